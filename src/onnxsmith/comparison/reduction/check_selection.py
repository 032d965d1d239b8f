"""Finds the check that a caller names: by text, as a function, or as a check itself."""

from __future__ import annotations

import shlex

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.comparison.reduction.checks.base import Check
from onnxsmith.comparison.reduction.function_check import Function, FunctionCheck


def chosen(given: str | Check | Function, status: int | None) -> Check:
    """The check; `status` is the exit status that means failure, if the check is a command.

    Raises:
        OnnxsmithError: `reduce/unknown-check`, with the possible checks; `runtime/…` for a runtime that cannot be used.
    """
    if isinstance(given, Check):
        return given
    if not isinstance(given, str):
        if callable(given):
            return FunctionCheck(given)
        raise problem(
            "reduce/unknown-check", f"{type(given).__name__} is not a check", fix="give a text, or a function to call"
        )
    made = _parsed(given)
    if status is None:
        return made
    if not hasattr(made, "status"):
        raise problem(
            "reduce/unknown-check", "only a command has an exit status", where=given, fix="leave out --status"
        )
    return type(made)(**{**vars(made), "status": status})


def _parsed(given: str) -> Check:
    known = rooms.classes("onnxsmith.comparison.reduction.checks", Check)
    usages = ", ".join(f"{name} {kind.usage}" for name, kind in known.items())
    try:
        words = shlex.split(given)
        if not words or words[0] not in known:
            raise ValueError(f"there is no check {words[0]!r}" if words else "it is empty")
        return known[words[0]].parse(words[1:])
    except ValueError as error:
        raise problem(
            "reduce/unknown-check", "the check could not be understood", where=given, why=str(error), fix=usages
        ) from error


def text_of(check: str | Check | Function) -> str:
    """The check as a report shows it."""
    if isinstance(check, str):
        return check
    return str(check) if isinstance(check, Check) else getattr(check, "__name__", type(check).__name__)
