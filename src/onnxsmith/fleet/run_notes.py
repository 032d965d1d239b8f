"""Says what happened in a run beside its table: what is kept, what other runs did, and which workers died."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.fleet import FleetMatrix
from onnxsmith.base.system import memory_limit
from onnxsmith.base.words import first_few, pasted_words, several
from onnxsmith.fleet import cells as cell_lists
from onnxsmith.fleet import tables
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.driver import Progress

_SHOWN = 5
"""Limits the workers that a note names. A choice."""


def again(path: str | Path, name: str, store: str, shard: tuple[int, int] | None, scheduler: str) -> str:
    """Returns the command that goes on with a run: the part `shard` of it, in a store and with a scheduler."""
    part = f"{shard[0]}/{shard[1]}" if shard is not None else ""
    options = {"--name": name, "--store": store, "--shard": part, "--scheduler": scheduler}
    words = [word for option, value in options.items() if value for word in (option, value)]
    return pasted_words(["onnxsmith", "fleet", "run", str(path), "--resume", *words])


def with_kept(stopped: Problem | None, table: FleetMatrix, again: str) -> Problem | None:
    """Returns why a run was stopped, with what is kept and how it goes on."""
    if stopped is None:
        return None
    missing = sum(cell.outcome == tables.MISSING for cell in table.cells)
    kept = f"{len(table.cells) - missing:,} of {several(len(table.cells), 'cell')} are in the store"
    why = "; ".join(filter(None, (stopped.why, kept)))
    fix = "; or ".join(filter(None, (stopped.fix, f"go on: `{again}`")))
    return Problem(stopped.id, stopped.what, stopped.where, why, fix)


def of_run(table: FleetMatrix, progress: Progress) -> list[str]:
    """Returns the notes on a run: cells without a row, cells that another run computed, and workers that died."""
    missing = sum(cell.outcome == tables.MISSING for cell in table.cells)
    notes = (
        [f"{several(missing, 'cell')} of this run {'has' if missing == 1 else 'have'} no row yet"] if missing else []
    )
    if progress.taken:
        notes.append(f"another run computed {several(progress.taken, 'cell')} in the meantime")
    if progress.died:
        notes.append(f"workers that ended unexpectedly: {first_few(progress.died, _SHOWN)}")
    return [
        *notes,
        *[f"because workers ended unexpectedly, {several(progress.alone, 'cell')} ran again, one at a time"]
        * bool(progress.alone),
    ]


def unlimited(everything: Sequence[Cell]) -> tuple[str, ...]:
    """Returns a note that the memory limit of the plan does not hold on this system; nothing if it does."""
    missing = memory_limit.HERE.missing
    return (f"memory_limit of the plan is not enforced: {missing}",) * (
        bool(missing) and any(cell.limits.bytes for cell in everything)
    )


def empty(shard: tuple[int, int] | None, everything: Sequence[Cell]) -> tuple[str, ...]:
    """Returns a note on a part without cells: there are more parts than cells."""
    number, count = shard or (1, 1)
    cells = several(len(cell_lists.by_key(everything)), "cell")
    return (
        f"part {number} of {count} has no cells, because the plan has only {cells}; the store can be merged anyway",
    )
