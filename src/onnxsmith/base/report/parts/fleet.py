"""Describes a run of a fleet: how each cell ended, and what changed since another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Facts, Part, Table, Text, Tone, facts
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import pasted, several

_ORDER = (
    "lost", "crashed", "timeout", "memory", "failed", "different", "refused", "cannot-tell", "missing", "done",
)  # fmt: skip
"""Outcomes from bad to good. `missing` is a cell without a row."""
_UNKNOWN = ("lost", "missing", "")
"""Outcomes that say nothing about the model, so that they are neither worse nor better."""
_VERDICTS = {
    "done": Verdict.DONE,
    "different": Verdict.DIFFERENT,
    "refused": Verdict.DIFFERENT,
    "cannot-tell": Verdict.CANNOT_TELL,
    "missing": None,
}
"""The verdict of a case by outcome; every other outcome is `failed`. A cell without a row has no verdict."""
_MOST_ROWS = 20
"""Rows of models in a terminal; a page has all. A choice."""
_MOST_CHANGES = 40
"""Changes since another run in a terminal. A choice: they are what was asked for, and fit on a large one."""
_LONGEST = 300
"""Characters of a reason in a terminal. A choice: three lines."""
_MOST_COLUMNS = 6
"""Columns of settings in a terminal. A choice."""


@dataclass(frozen=True)
class FleetCell:
    """A cell of a run. `outcome` is a verdict, or `refused`, `memory`, `timeout`, `crashed`, `lost` or `missing`.
    `problem` is the id of its worst problem. `before` is the outcome in the run that this one is compared with; "" if
    there is none."""

    model: str
    setting: str
    environment: str
    outcome: str
    headline: str
    problem: str
    seconds: float
    key: str
    before: str = ""

    @property
    def harm(self) -> int:
        """Returns the place of the outcome from bad to good."""
        return _ORDER.index(self.outcome) if self.outcome in _ORDER else 0

    @property
    def change(self) -> int:
        """Returns 1 if the cell is worse than before, -1 if it is better, 0 if it is neither, or unknown."""
        if self.before == self.outcome or self.before in _UNKNOWN or self.outcome in _UNKNOWN:
            return 0
        before = _ORDER.index(self.before) if self.before in _ORDER else 0
        return 1 if self.harm < before else -1


@dataclass(frozen=True)
class FleetMatrix(Part):
    """Models by settings. `since` is the name of the run that this one is compared with; "" for none. `computed` and
    `reused` count the cells whose rows are new, and those whose rows the store had. `gone` are the models and settings
    of the run `since` that this run does not have."""

    title: ClassVar[str] = "Fleet"

    run: str
    store: str
    cells: tuple[FleetCell, ...]
    since: str = ""
    computed: int = 0
    reused: int = 0
    gone: tuple[tuple[str, str], ...] = ()

    def worse(self) -> list[FleetCell]:
        """Returns the cells that are worse than in the run `since`."""
        return [cell for cell in self.cells if cell.change > 0]

    def new_and_not_done(self) -> list[FleetCell]:
        """Returns the cells that the run `since` does not have, and that are not done."""
        return [cell for cell in self.cells if self._is_new(cell) and cell.outcome != "done"]

    def better(self) -> list[FleetCell]:
        """Returns the cells that are better than in the run `since`."""
        return [cell for cell in self.cells if cell.change < 0]

    def _is_new(self, cell: FleetCell) -> bool:
        return bool(self.since) and not cell.before and cell.outcome not in _UNKNOWN

    def cases(self) -> Iterator[Case]:
        bad = {*self.worse(), *self.new_and_not_done()}
        for cell, column in ((cell, self._column(cell)) for cell in self.cells):
            verdict = _VERDICTS.get(cell.outcome, Verdict.FAILED)
            is_known = bool(self.since) and cell not in bad and cell.outcome not in _UNKNOWN
            what = () if cell.outcome == "done" else (f"{cell.outcome}: {cell.headline}",)
            rules = (cell.problem,) if cell.problem and not is_known else ()
            yield Case(cell.model, cell.model, column, Verdict.DONE if is_known else verdict, what, rules)
        for model, column in self.gone:
            yield Case(model, model, column, Verdict.DIFFERENT, (f"present in {self.since}, but not in this run",))

    def failures(self) -> Iterator[str]:
        for case in self.cases():
            if case.verdict is not Verdict.DONE:
                yield f"{case.file} ({case.question}): {'; '.join(case.what) or 'the result is unknown'}"

    def columns(self) -> list[tuple[str, str]]:
        """Returns the settings and environments, in the order of the plan."""
        return list(dict.fromkeys((cell.setting, cell.environment) for cell in self.cells))

    def column_names(self) -> list[str]:
        """Returns a name for each column. The environment is left out where there is one only."""
        several_environments = len({environment for _, environment in self.columns()}) > 1
        return [f"{one} {two}" if several_environments else one for one, two in self.columns()]

    def blocks(self) -> Iterator[Block]:
        yield self._facts()
        changed = [cell for cell in self.cells if cell.change or self._is_new(cell)]
        if changed or self.gone:
            yield self._changes(changed)
        elif self.since:
            yield Text(f"no cell ended differently than in {self.since}", Tone.GOOD)
        if not self.cells:
            return
        if len(self.columns()) > 1:
            yield self._by_column()
        yield self._matrix()
        bad = sorted((cell for cell in self.cells if cell.outcome != "done"), key=lambda cell: (cell.harm, cell.model))
        if bad:
            yield self._listed(bad)

    def _facts(self) -> Facts:
        new = f"{self.computed:,} computed now, {self.reused:,} from the store" if self.computed + self.reused else None
        models = len({cell.model for cell in self.cells})
        return facts(
            [
                ("run", self.run),
                ("store", self.store),
                (
                    "cells",
                    f"{len(self.cells):,}: {several(models, 'model')} in {several(len(self.columns()), 'column')}",
                ),
                ("rows", new),
                ("compared with", self.since or None),
            ]
        )

    def _by_column(self) -> Table:
        outcomes = [name for name in reversed(_ORDER) if any(cell.outcome == name for cell in self.cells)]
        rows = []
        for column, name in zip(self.columns(), self.column_names(), strict=True):
            count = Counter(cell.outcome for cell in self.cells if (cell.setting, cell.environment) == column)
            rows.append((name, *(f"{count[outcome] or '·'}" for outcome in outcomes)))
        return Table(("setting", *outcomes), tuple(rows), right=tuple(range(1, len(outcomes) + 1)))

    def _matrix(self) -> Table:
        columns = self.columns()
        by_model: dict[str, dict[tuple[str, str], FleetCell]] = {}
        for cell in self.cells:
            by_model.setdefault(cell.model, {})[cell.setting, cell.environment] = cell
        rows = tuple(
            (model, *(self._shown(cells.get(column)) for column in columns)) for model, cells in by_model.items()
        )
        harm = [min(cell.harm for cell in cells.values()) for cells in by_model.values()]
        order = sorted(range(len(rows)), key=lambda row: harm[row])
        shown = tuple(order[:_MOST_ROWS]) if len(columns) <= _MOST_COLUMNS else ()
        return Table(("model", *self.column_names()), rows, rows_in_terminal=shown, worst_first=tuple(order))

    def _shown(self, cell: FleetCell | None) -> str:
        if cell is None:
            return "·"
        mark = {1: " ▲", -1: " ▽", 0: ""}[cell.change]
        return f"{cell.outcome}{mark}"

    def _listed(self, bad: list[FleetCell]) -> Table:
        rows = tuple(
            (cell.model, self._column(cell), cell.outcome, cell.problem, cell.headline, _time(cell)) for cell in bad
        )
        head = ("model", "setting", "outcome", "problem", "what", "time")
        shown = tuple(range(min(len(rows), _MOST_ROWS)))
        return Table(head, rows, right=(5,), rows_in_terminal=shown, longest=_LONGEST)

    def _changes(self, changed: list[FleetCell]) -> Table:
        worse = {*self.worse(), *self.new_and_not_done()}
        ordered = sorted(changed, key=lambda cell: (cell not in worse, cell.harm, cell.model))
        rows = (
            *((model, setting, "there", "gone", "") for model, setting in self.gone),
            *((cell.model, self._column(cell), cell.before or "new", cell.outcome, cell.headline) for cell in ordered),
        )
        head = ("model", "setting", f"in {self.since}", "now", "what")
        shown = tuple(range(min(len(rows), _MOST_CHANGES)))
        return Table(head, rows, rows_in_terminal=shown, is_key=True, longest=_LONGEST)

    def _column(self, cell: FleetCell) -> str:
        return dict(zip(self.columns(), self.column_names(), strict=True))[cell.setting, cell.environment]


def _time(cell: FleetCell) -> str:
    """Returns how long a cell took; "" for a cell that did not run."""
    return duration(cell.seconds) if cell.seconds else ""


@dataclass(frozen=True)
class CellStep:
    """A step of a cell: the command as it is typed, how it ended, and the end of its standard error if it gave no
    report."""

    verb: str
    command: str
    outcome: str
    headline: str
    seconds: float
    said: str = ""


@dataclass(frozen=True)
class CellSteps(Part):
    """The steps of one cell. `folder` is the folder in which they run; "" if that is not known."""

    title: ClassVar[str] = "Steps"

    folder: str
    steps: tuple[CellStep, ...]

    def blocks(self) -> Iterator[Block]:
        rows = tuple((step.verb, step.outcome, duration(step.seconds), step.headline) for step in self.steps)
        yield Table(("step", "outcome", "time", "what"), rows, right=(2,), longest=_LONGEST)
        commands = [step.command for step in self.steps if step.command]
        if commands:
            there = [f"cd {pasted(self.folder)}"] if self.folder else []
            yield Text("\n".join([*there, *commands]), verbatim=True)
        for step in self.steps:
            if step.said:
                yield Text(f"{step.verb}: the end of standard error:\n{step.said}", Tone.WARN, verbatim=True)


@dataclass(frozen=True)
class TriedVersion:
    """A version of a package, and how the cell ended with it."""

    version: str
    outcome: str
    headline: str
    seconds: float


@dataclass(frozen=True)
class TriedVersions(Part):
    """The versions that a search by halving tried, in their order."""

    title: ClassVar[str] = "Versions"

    package: str
    versions: tuple[TriedVersion, ...]

    def blocks(self) -> Iterator[Block]:
        rows = tuple((one.version, one.outcome, duration(one.seconds), one.headline) for one in self.versions)
        yield Table((self.package, "outcome", "time", "what"), rows, right=(2,), longest=_LONGEST)


@dataclass(frozen=True)
class CellCommand:
    """A cell, and the shell command that computes it."""

    model: str
    setting: str
    environment: str
    key: str
    command: str


@dataclass(frozen=True)
class CellCommands(Part):
    """A shell command for each cell of a plan."""

    title: ClassVar[str] = "Commands"

    cells: tuple[CellCommand, ...]

    def blocks(self) -> Iterator[Block]:
        yield Text("\n".join(cell.command for cell in self.cells), verbatim=True)
