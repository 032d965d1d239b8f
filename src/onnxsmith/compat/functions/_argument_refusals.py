"""Refuses arguments that cannot be honoured, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from onnxsmith.base.problem import OnnxsmithError, problem


class Unsupported(NamedTuple):
    """An argument that exists only for compatibility of the signature and cannot be honoured: as it was given, why, and
    what to write instead."""

    argument: str
    why: str
    fix: str


def refuse(call: str, found: Iterable[Unsupported]) -> None:
    """Raises the problem of the first argument that cannot be honoured; does nothing if there is none.

    Raises:
        OnnxsmithError: `compat/argument`.
    """
    for one in found:
        raise refused(call, one)


def refused(call: str, one: Unsupported) -> OnnxsmithError:
    """Returns the problem of an argument that cannot be honoured."""
    return problem(
        "compat/argument",
        f"{call} does not accept {one.argument}",
        where=one.argument.partition("=")[0],
        why=one.why,
        fix=one.fix,
    )
