"""Describes what a baseline records of models, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import several, size

WORSE, CHANGED, BETTER, UNKNOWN = "worse", "changed", "better", "cannot tell"
"""Are the results of a change. A change that is none of the others is `changed`: nothing is worse."""
ACCEPTED = "accepted"
"""Is the result of a change that `accept` recorded, whatever it was before."""

_QUESTIONS = {
    "interface": ("interface",),
    "numbers": ("weights", "graph", "runtime", "machine", "unsteady", "numbers", "file"),
    "targets": ("target",),
    "time": ("slower", "faster"),
    "memory": ("memory",),
    "size": ("size",),
    "nodes": ("nodes",),
}
"""Maps a question about a model to the causes of the changes that answer it."""
_FAILURES = {
    "missing": (Verdict.DIFFERENT, ("gate/model-missing",)),
    "new": (Verdict.CANNOT_TELL, ("gate/model-new",)),
    "failed": (Verdict.FAILED, ()),
}
"""Maps the result of a model that was not measured to its verdict and the ids of its problems."""
_MOST_ROWS = 20
"""Rows of models in a terminal; a page has all. A choice."""


@dataclass(frozen=True)
class BaselineChange:
    """One change of a model. `kind` is its cause: `missing`, `interface`, `weights`, `graph`, `runtime`, `machine`,
    `unsteady`, `target`, `slower`, `faster`, `memory`, `size`, `nodes`, `file`, `new` or `entry`; `result` is what it
    means."""

    model: str
    kind: str
    result: str
    what: str


@dataclass(frozen=True)
class BaselineModel:
    """A model of a baseline as it is now. `result` is `as recorded`, `changed`, `better`, `worse`, `cannot tell`,
    `missing`, `new`, `failed`, `recorded`, `accepted` or `dropped`. The number of recorded inputs, the nodes and the
    bytes are None for a model of which nothing is recorded. `time` is the median of a run in seconds, None if it was
    not measured."""

    model: str
    result: str
    inputs: int | None = None
    nodes: int | None = None
    bytes: int | None = None
    time: float | None = None
    targets: dict[str, str] | None = None


def _counts(one: BaselineModel) -> tuple[str, str, str]:
    if one.inputs is None or one.nodes is None or one.bytes is None:
        return "", "", ""
    return str(one.inputs), f"{one.nodes:,}", size(one.bytes)


@dataclass(frozen=True)
class Baselines(Part):
    """A row for each model, then a row for each change."""

    title: ClassVar[str] = "Baseline"

    baseline: str
    models: tuple[BaselineModel, ...]
    changes: tuple[BaselineChange, ...] = ()

    def blocks(self) -> Iterator[Block]:
        timed = any(one.time is not None for one in self.models)
        asked = any(one.targets for one in self.models)
        head = ("model", "result", "inputs", "nodes", "file")
        rows = tuple(
            (
                *(one.model, one.result, *_counts(one)),
                *((duration(one.time),) if timed else ()),
                *((", ".join(f"{name} {stage}" for name, stage in (one.targets or {}).items()),) if asked else ()),
            )
            for one in self.models
        )
        heads = (*head, *(("run",) if timed else ()), *(("targets",) if asked else ()))
        first = sorted(range(len(rows)), key=lambda at: self.models[at].result == "as recorded")
        yield Table(
            heads,
            rows,
            right=(2, 3, 4, *((5,) if timed else ())),
            rows_in_terminal=tuple(sorted(first[:_MOST_ROWS])) if len(rows) > _MOST_ROWS else None,
            worst_first=tuple(first),
        )
        if self.changes:
            order = {WORSE: 0, UNKNOWN: 1, CHANGED: 2, BETTER: 3}
            found = sorted(self.changes, key=lambda one: order.get(one.result, 2))
            yield Table(
                ("model", "cause", "result", "change"),
                tuple((one.model, one.kind, one.result, one.what) for one in found),
                is_key=True,
            )
        worse = sum(one.result == WORSE for one in self.changes)
        if worse:
            yield Text(f"{several(worse, 'change is', 'changes are')} for the worse", Tone.BAD)

    def cases(self) -> Iterator[Case]:
        for model in self.models:
            file = (Path(self.baseline).parent / model.model).as_posix()
            if model.result in _FAILURES:
                verdict, rules = _FAILURES[model.result]
                changes = tuple(one.what for one in self.changes if one.model == model.model)
                yield Case(model.model, file, "model", verdict, changes, rules)
            elif model.result in ("recorded", "accepted"):
                yield Case(model.model, file, model.result, Verdict.DONE)
            else:
                yield from self._answers(model, file)

    def _answers(self, model: BaselineModel, file: str) -> Iterator[Case]:
        """Yields the questions about a model that was measured. Where nothing was measured, there is no verdict."""
        for question, causes in _QUESTIONS.items():
            changes = [one for one in self.changes if one.model == model.model and one.kind in causes]
            results = {one.result for one in changes}
            rules: tuple[str, ...] = ()
            verdict, counted = Verdict.DONE, ""
            if WORSE in results:
                verdict, rules, counted = Verdict.DIFFERENT, ("gate/worse",), WORSE
            elif UNKNOWN in results:
                verdict, rules, counted = Verdict.CANNOT_TELL, ("gate/not-compared",), UNKNOWN
            unmeasured = model.time is None if question in ("time", "memory") else not model.targets
            skipped = question in ("time", "memory", "targets") and unmeasured and not changes
            what = tuple(f"{one.kind}: {one.what}" for one in changes if one.result == counted)
            yield Case(model.model, file, question, None if skipped else verdict, what, rules)
