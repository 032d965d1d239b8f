"""Joins the stores of several machines: rows that one of them lacks, and the parts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base import devices, folders
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.words import several
from onnxsmith.fleet import store_problems, tables
from onnxsmith.fleet.row import UNDECIDED
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.stores.base import Store, closing, is_folder, opened


@closing()
def merge(sources: Sequence[str], target: str) -> Report:
    """Copies the rows and runs of stores into one. Runs of one name are joined: they are parts of one plan.

    Raises:
        OnnxsmithError: `fleet/no-run` if a source has none; `fleet/run-taken` if runs of one name disagree; the errors
            of reading and writing stores.
    """
    devices.refuse(target, streams=False)
    for source in sources:
        tables.refuse_missing(source)
    with stage("merge"), store_problems.as_target():
        copied, notes = _into(sources, target)
        into = opened(target)
    table = tables.matrix(into, tables.run_of(into))
    return tables.report(
        "fleet merge", table, notes=[f"copied {several(copied, 'row')}", *notes, *tables.damaged(into)]
    )


def _into(sources: Sequence[str], target: str) -> tuple[int, list[str]]:
    """Copies the sources into the target. A target that is a new file is written aside, so that nothing is left of it
    if a source cannot be read. Returns the number of rows that were copied, and notes."""
    file = Path(target)
    if is_folder(target) or file.exists():
        return _all_copied(sources, target)
    try:
        file.absolute().parent.mkdir(parents=True, exist_ok=True)
        with folders.replacing(file) as aside, closing():
            return _all_copied(sources, str(aside))
    except OSError as error:
        raise store_problems.refused(target, error) from error


def _all_copied(sources: Sequence[str], target: str) -> tuple[int, list[str]]:
    into = opened(target)
    copied, runs = 0, 0
    notes: list[str] = []
    for source in sources:
        with store_problems.as_source(source):
            rows = opened(source)
        copied += _copied(rows, into)
        for name in rows.run_names():
            if (run_there := rows.run(name)) is None:
                raise store_problems.damaged(source, f"the run {name!r} is listed, but cannot be found")
            into.put_run(_joined(into.run(name), run_there, source))
            runs += 1
        notes += tables.damaged(rows)
    if not runs:
        raise problem("fleet/no-run", "the stores have no run", where=", ".join(sources), fix="run their plan first")
    return copied, notes


def _copied(rows: Store, into: Store) -> int:
    """Copies rows that the other store does not have, or has as a row that says nothing. Returns how many."""
    keys = rows.keys()
    there = into.summaries(keys)
    copied = 0
    for key in sorted(keys):
        row = rows.row(key) if key not in there or there[key].outcome in UNDECIDED else None
        if row is not None and (key not in there or row.outcome not in UNDECIDED):
            into.put(row)
            copied += 1
    return copied


def _joined(here: Run | None, there: Run, source: str) -> Run:
    if here is None:
        return there
    for place, key in there.cells.items():
        if here.cells.get(place, key) != key:
            raise problem(
                "fleet/run-taken",
                f"two runs are called {there.name!r}, but {place[0]} is a different model in each",
                where=source,
                fix="merge the stores into different stores, or run one of the two runs again under another --name",
            )
    return Run(here.name, here.plan_name, here.plan, min(here.at, there.at), {**here.cells, **there.cells})
