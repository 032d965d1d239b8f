"""Finds a form of a refused model that the target takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith import rooms
from onnxsmith.checking.fixes.base import Fix
from onnxsmith.checking.narrowing import narrow
from onnxsmith.checking.subject import Subject
from onnxsmith.problem import OnnxsmithError
from onnxsmith.targets.base import Judge, Refusal

_DEPTH = 3
"""Fixes that are applied one after the other. A choice: a model seldom needs more."""
UNKNOWN = "the file"
"""Stands for the refused operators if they are not known, or if the file as a whole is refused."""
_FEW = 4
"""Culprits that are looked for after a fix, to see whether it helped. A choice."""


@dataclass(frozen=True)
class Fixed:
    """A model that the target takes, and what was done to it. It is not compared with the original yet."""

    model: ir.Model
    steps: tuple[str, ...]


def fixed(
    judge: Judge, subject: Subject, refused: set[str], good: Callable[[ir.Model], bool] = lambda _: True
) -> Fixed | None:
    """Returns the first combination of fixes with which the target takes the model and that is `good`; else None.

    A fix that leaves fewer refused operators is kept, and others are tried on top of it.
    """
    if refused == {UNKNOWN}:
        refused = _left(judge, subject, Refusal(""))
    model = subject.model
    steps: tuple[str, ...] = ()
    for _ in range(_DEPTH):
        better: tuple[ir.Model, tuple[str, ...], set[str]] | None = None
        for said, made in _tries(model, refused):
            refusal = _asked(judge, made, subject)
            if refusal is None:
                if good(made):
                    return Fixed(made, (*steps, said))
                continue
            left = _left(judge, subject.with_model(made), refusal)
            if left < refused and (better is None or len(left) < len(better[2])):
                better = made, (*steps, said), left
        if better is None:
            return None
        model, steps, refused = better
    return None


def _tries(model: ir.Model, refused: set[str]) -> Iterator[tuple[str, ir.Model]]:
    members = rooms.members("onnxsmith.checking.fixes", Fix)
    for fix in sorted(members.values(), key=lambda one: one.rank):
        try:
            yield from fix.tries(model, refused)
        except OnnxsmithError:  # the fix does not apply to this model
            continue


def _asked(judge: Judge, model: ir.Model, subject: Subject) -> Refusal | None:
    try:
        return judge.ask(model, subject.feeds).refusal
    except OnnxsmithError as error:
        return Refusal(error.problem.what)


def _left(judge: Judge, subject: Subject, refusal: Refusal) -> set[str]:
    """The operators that are still refused."""

    def ask(part: ir.Model) -> Refusal | None:
        try:
            return judge.ask(part, subject.part_feeds(part) if subject.dynamic else None).refusal
        except OnnxsmithError:
            return None

    found = narrow(subject.shaped, ask, refusal, most=_FEW)
    return {one.op for one in found.culprits} if found.whole is None else {UNKNOWN}
