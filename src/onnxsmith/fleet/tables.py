"""Makes the report of a run from the rows in a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.fleet import FleetCell, FleetMatrix
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, in_place_of, pasted_words, several
from onnxsmith.fleet.row import UNDECIDED, Outcome
from onnxsmith.fleet.run_list import Place, Run
from onnxsmith.fleet.stores.base import Store

MISSING = "missing"
"""The outcome of a cell that has no row yet."""
_SHOWN = 3
"""Limits the cells that a headline names. A choice."""


def run_of(store: Store, name: str = "", plan: str = "") -> Run:
    """Returns a run by its name; without a name, the latest. `plan` is the path of the plan, if it is known.

    Raises:
        OnnxsmithError: `fleet/no-run`.
    """
    names = store.run_names()
    run = store.run(name or names[-1]) if name or names else None
    if run is None:
        raise problem(
            "fleet/no-run",
            f"the store has no run {name!r}" if name else "the store has no run",
            where=store.address,
            why="; ".join(damaged(store)),
            fix=in_place_of(name, names) if names else f"run the plan first: `{run_command(plan)}`",
        )
    return run


def run_command(plan: str = "") -> str:
    """Returns the command that runs a plan, for a fix."""
    return pasted_words(["onnxsmith", "fleet", "run", plan or "plan.toml"])


def refuse_missing(address: str, plan: str = "") -> None:
    """Refuses the address of a store that is not there: a store is made by what writes to it, not by what reads it.
    `plan` is the path of the plan, if it is known.

    Raises:
        OnnxsmithError: `fleet/no-run`.
    """
    here = "://" not in address
    if here and (not Path(address).exists() or (Path(address).is_file() and not Path(address).stat().st_size)):
        raise problem(
            "fleet/no-run",
            "there is no such store",
            where=address,
            fix=f"give the plan (.toml) or its store; `{run_command(plan)}` makes a store",
        )


@dataclass(frozen=True)
class Earlier:
    """How the cells of an earlier run ended, as the store says before new rows replace its rows."""

    name: str = ""
    outcomes: Mapping[Place, str] = field(default_factory=dict)


NONE = Earlier()
"""No run to compare with."""


def earlier(store: Store, name: str, plan: str = "") -> Earlier:
    """Returns how the cells of a run ended; without a name, no run.

    Raises:
        OnnxsmithError: `fleet/no-run`.
    """
    if not name:
        return NONE
    run = run_of(store, name, plan)
    rows = store.summaries(set(run.cells.values()))
    return Earlier(name, {place: rows[key].outcome.value for place, key in run.cells.items() if key in rows})


def damaged(store: Store) -> list[str]:
    """Returns a note on each row and each run of the store that was damaged when it was read."""
    return [
        f"{where} is damaged and was ignored: {why or 'it is empty'}" for where, why in sorted(store.damaged.items())
    ]


def matrix(store: Store, run: Run, since: Earlier = NONE, *, computed: int = 0, reused: int = 0) -> FleetMatrix:
    """Returns the table of a run, compared with the run `since`."""
    rows = store.summaries(set(run.cells.values()))
    cells = []
    for place, key in run.cells.items():
        summary = rows.get(key)
        cells.append(
            FleetCell(
                *place,
                outcome=summary.outcome.value if summary is not None else MISSING,
                headline=summary.headline if summary is not None else "",
                problem=summary.problem if summary is not None else "",
                seconds=summary.seconds if summary is not None else 0.0,
                key=key,
                before=since.outcomes.get(place, ""),
            )
        )
    gone = tuple((model, setting) for model, setting, environment in since.outcomes.keys() - run.cells.keys())
    return FleetMatrix(run.name, store.address, tuple(cells), since.name, computed, reused, tuple(sorted(set(gone))))


def report(command: str, table: FleetMatrix, stopped: Problem | None = None, notes: Sequence[str] = ()) -> Report:
    """Returns the report of a table. The verdict is `done` if all cells are; with another run to compare with, if none
    is worse than there, each new one is done, none is gone, and all have a row that says something. It is `failed` if
    the run was stopped."""
    count = Counter(cell.outcome for cell in table.cells)
    counted = [f"{count[name]:,} {name}" for name in (*map(str, Outcome), MISSING) if count[name]]
    headline = f"{table.run}: {several(len(table.cells), 'cell')}: {', '.join(counted) or 'none to run'}"
    headline += "".join(f"; {text}" for text in _changes(table))
    unknown = count[MISSING] + sum(count[str(outcome)] for outcome in UNDECIDED)
    bad = count[str(Outcome.DONE)] < len(table.cells)
    if table.since:
        bad = bool(table.worse() or table.new_and_not_done() or table.gone or unknown)
    verdict = Verdict.FAILED if stopped is not None else Verdict.DIFFERENT if bad else Verdict.DONE
    problems = (stopped,) if stopped is not None else ()
    return Report(command, verdict, (table,), problems, tuple(notes), headline)


def _changes(table: FleetMatrix) -> Iterator[str]:
    """Yields what changed since another run: each kind of change with its word, its count and the first cells."""
    if not table.since:
        return
    repaired = [cell for cell in table.better() if cell.outcome == Outcome.DONE]
    others = [cell for cell in table.better() if cell.outcome != Outcome.DONE]
    worse = _named(table.worse())
    count = f"{len(worse):,} " if worse else ""
    yield f"{count}worse than in {table.since}: {first_few(worse, _SHOWN) or 'none'}"
    changes = {
        "new and not done": _named(table.new_and_not_done()),
        "gone": [f"{model} ({setting})" for model, setting in table.gone],
        "repaired": _named(repaired),
        "better, and not done": _named(others),
    }
    for word, names in changes.items():
        if names:
            yield f"{len(names):,} {word}: {first_few(names, _SHOWN)}"


def _named(cells: Iterable[FleetCell]) -> list[str]:
    return [f"{cell.model} ({cell.setting})" for cell in cells]
