"""Finds a form of a refused model that the target takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.deployment.checking.refused_nodes import narrow, shape_of
from onnxsmith.runtimes import _call_limits
from onnxsmith.targets.judges.base import Judge, Refusal

_DEPTH = 3
"""Limits the fixes that are applied one after another. A choice: a model seldom needs more fixes."""
UNKNOWN = "the file"
"""Stands for the refused operators if these are unknown, or if the file as a whole is refused."""
_FEW = 4
"""Limits the culprits that are searched for after a fix, to see whether the fix helped. A choice."""


@dataclass(frozen=True)
class Fixed:
    """Holds a model that the target takes, and the changes that were made. The model is not compared with the original
    yet. `symbols` says why the target takes the model only at given sizes."""

    model: ir.Model
    steps: tuple[str, ...]
    symbols: str = ""


def in_words(helps: Fixed, subject: Subject) -> str:
    """Returns the changes, and the sizes at which the target takes the changed model."""
    sizes = " (at fixed sizes)" if helps.symbols else " (with dynamic shapes)" if subject.dynamic else ""
    return "; ".join(helps.steps) + sizes


@dataclass
class Search:
    """Holds additional results of a search for fixes. `rejected` are forms that the target takes, each with the fault
    that `good` found."""

    rejected: list[str] = field(default_factory=list)


def fixed(
    judge: Judge,
    subject: Subject,
    refused: set[str],
    good: Callable[[ir.Model], str] = lambda _: "",
    search: Search | None = None,
) -> Fixed | None:
    """Returns the first combination of fixes after which the target takes the model and `good` finds no fault; else
    None. If the target refuses the model at all sizes, a form that the target takes only at given sizes is the last
    resort.

    A fix that leaves fewer refused operators is kept, and other fixes are tried on top of it.
    """
    search = search or Search()
    stops, symbols = taken(judge, subject.model, subject)
    if stops is None and symbols is None:
        return Fixed(subject.model, ())
    sized: Fixed | None = None
    said = stops or symbols
    assert said is not None
    if refused == {UNKNOWN}:
        refused = _left(judge, subject, said)
    model = subject.model
    steps: tuple[str, ...] = ()
    for _ in range(_DEPTH):
        better: tuple[ir.Model, tuple[str, ...], set[str], Refusal] | None = None
        for step, made in _tries(model, refused):
            refusal, only_sized = taken(judge, made, subject)
            if refusal is None and (only_sized is None or (sized is None and stops is not None)):
                wrong = good(made)
                if wrong:
                    search.rejected.append(f"{'; '.join((*steps, step))}, {wrong}")
                    continue
                found = Fixed(made, (*steps, step), only_sized.why if only_sized is not None else "")
                if only_sized is None:
                    return found
                sized = found
            now = refusal or only_sized
            assert now is not None
            if judge.refused(made) is None and shape_of(now.why) == shape_of(said.why):
                continue  # the first refused node is still there, so this fix did not help
            left = _left(judge, subject.with_model(made), now)
            # A proper subset: a fix that trades one refused operator for another is no progress.
            if left < refused and (better is None or len(left) < len(better[2])):
                better = made, (*steps, step), left, now
        if better is None or sized is not None:
            return sized
        model, steps, refused, said = better
    return sized


def taken(judge: Judge, model: ir.Model, subject: Subject) -> tuple[Refusal | None, Refusal | None]:
    """Returns why the target refuses the model as a file, and why the target takes it only at given sizes."""
    try:
        answer = judge.ask(model, subject.feeds)
        if answer.refusal is not None or not judge.prepares(model):
            return answer.refusal, answer.symbols
        form = subject if model is subject.model else subject.with_model(model)
        try:
            own = judge.unchanged(form.file, subject.feeds)
        finally:
            if form is not subject:
                form.close()
    except OnnxsmithError as error:
        if _call_limits.is_over():
            raise
        return Refusal(error.problem.what), None
    return (answer.refusal, answer.symbols) if own is None else (own.refusal, own.symbols)


def _tries(model: ir.Model, refused: set[str]) -> Iterator[tuple[str, ir.Model]]:
    members = rooms.members("onnxsmith.deployment.checking.fixes", Fix)
    for fix in sorted(members.values(), key=lambda one: one.rank):
        try:
            yield from fix.tries(model, refused)
        except OnnxsmithError:  # the fix does not apply to this model
            continue


def _left(judge: Judge, subject: Subject, refusal: Refusal) -> set[str]:
    """Returns the operators that are still refused; UNKNOWN if the target refuses the whole file, but no part of its
    graph."""

    def ask(part: ir.Model) -> Refusal | None:
        try:
            said = judge.ask(part, subject.part_feeds(part) if subject.dynamic else None)
            return said.refusal or (said.symbols if subject.dynamic else None)
        except OnnxsmithError:
            if _call_limits.is_over():
                raise
            return None

    known = judge.refused(subject.model)
    if known is not None:
        return known
    # The target takes the prepared model but not the file, so no part of the graph is to blame.
    if judge.prepares(subject.model) and ask(subject.model) is None:
        return {UNKNOWN}
    found = narrow(subject.shaped, ask, refusal, most=_FEW)
    return {one.op for one in found.culprits} if found.whole is None else {UNKNOWN}
