"""The verbs of the fleet about a plan: run, list, show."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.system import machine
from onnxsmith.base.words import in_place_of, pasted_words
from onnxsmith.fleet import cells as cell_lists
from onnxsmith.fleet import driver, kept_files, plan_reader, run_notes, tables
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.driver import Job
from onnxsmith.fleet.engines.base import Engine
from onnxsmith.fleet.plan import Plan
from onnxsmith.fleet.row import UNDECIDED, Outcome
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.stores.base import Store, closing, opened
from onnxsmith.fleet.tables import Earlier

STORE = "fleet.sqlite"
"""The store of a plan that names none, beside the plan."""


@dataclass(frozen=True)
class Settings:
    """How to run a plan. `again` lists outcomes whose cells are computed anew, or `all`. `shard` is (3, 20) for the
    third of twenty parts."""

    store: str = ""
    name: str = ""
    since: str = ""
    resume: bool = False
    again: tuple[str, ...] = ()
    engine: str = "local"
    workers: int = 0
    scheduler: str = ""
    shard: tuple[int, int] | None = None


USUAL = Settings()
"""How a plan is run if nothing else is said."""


@closing()
def run(path: str | Path, settings: Settings = USUAL) -> Report:
    """Runs the cells of a plan that the store has no row of, and returns the table of all.

    Raises:
        OnnxsmithError: the errors of reading the plan, its models and the store; `fleet/engine`, `fleet/memory`,
            `fleet/run-taken`, `fleet/no-run`.
    """
    with Clock() as clock:
        plan = plan_reader.read(path)
        engine = _engine(settings.engine)
        everything = cell_lists.of_plan(plan)
        cells = everything if settings.shard is None else cell_lists.shard(everything, *settings.shard)
        store = opened(address_of(plan, settings.store))
        since = tables.earlier(store, settings.since, str(path))
        current = _current(plan, everything, store, settings)
        shown, since = _of_part(current, since, cells)
        workers = _workers(plan, settings.workers, settings.scheduler)
        wanted, again = _wanted(cells, store, settings.again)
        unkept = _put_run(store, current, is_needed=bool(wanted))
        job = Job(
            driver.with_threads(wanted, _threads(workers)),
            store,
            again=again,
            before=_seconds_before(store, current),
            sizes=_sizes(plan, cells),
        )
        try:
            driver.compute(job, engine, workers=workers, scheduler=settings.scheduler)
            stopped = job.progress.stopped
        except KeyboardInterrupt:
            stopped = Problem("run/interrupted", "the run was stopped", why="Ctrl-C, SIGTERM or SIGHUP")
        reused = len(cell_lists.by_key(cells)) - len(wanted) + job.progress.taken
        table = tables.matrix(store, shown, since, computed=job.progress.computed, reused=reused)
        stopped = run_notes.with_kept(stopped, table, _again(path, settings, current.name))
        empty = run_notes.empty(settings.shard, everything) if not cells else ()
        notes = [
            *run_notes.of_run(table, job.progress),
            *run_notes.unlimited(everything),
            *empty,
            *unkept,
            *tables.damaged(store),
        ]
        report = tables.report("fleet run", table, stopped, notes)
        return _timed(report, clock)


def address_of(plan: Plan, store: str = "") -> str:
    """Returns the address of the store: as given, else that of the plan, else a file beside the plan."""
    if store or "://" in plan.store:
        return store or plan.store
    named = str(plan.folder / (plan.store or STORE))
    return named + "/" if plan.store.endswith("/") else named


def listed(path: str | Path, store: str = "") -> list[tuple[Cell, str]]:
    """Returns the cells of a plan, and for each the shell command that computes it.

    Raises:
        OnnxsmithError: the errors of reading the plan and its models.
    """
    plan = plan_reader.read(path)
    more = ["--store", store] if store else []
    cells = cell_lists.by_key(cell_lists.of_plan(plan)).values()
    return [(cell, pasted_words(["onnxsmith", "fleet", "cell", str(path), cell.key, *more])) for cell in cells]


@closing()
def show(path: str | Path, store: str = "", name: str = "", since: str = "") -> Report:
    """Returns the table of a run that the store has; without a name, of the latest. `path` is the plan, or the store.

    Raises:
        OnnxsmithError: `fleet/no-run`, and the errors of reading the plan and the store.
    """
    plan = str(path) if str(path).endswith(".toml") else ""
    rows = opened(_store_of(path, store))
    table = tables.matrix(rows, tables.run_of(rows, name, plan), tables.earlier(rows, since, plan))
    return tables.report("fleet show", table, notes=tables.damaged(rows))


def _store_of(path: str | Path, store: str) -> str:
    """Returns the address of the store that a plan names, or the path itself if it is a store."""
    address = str(path)
    if store or address.endswith(".toml"):
        address = store or address_of(plan_reader.read(path))
    tables.refuse_missing(address, str(path) if str(path).endswith(".toml") else "")
    return address


def _engine(name: str) -> Engine:
    engines = rooms.members("onnxsmith.fleet.engines", Engine)
    if name not in engines:
        raise problem("fleet/engine", f"there is no engine {name!r}", fix=in_place_of(name, list(engines)))
    return engines[name]


def _current(plan: Plan, cells: Sequence[Cell], store: Store, settings: Settings) -> Run:
    """Returns the run that these cells belong to. A name that another run has is refused, unless that run is the same
    work and goes on."""
    name = settings.name
    if settings.resume and not name:
        same = [
            one for one in store.run_names() if (kept := store.run(one)) is not None and kept.plan_name == plan.name
        ]
        if not same:
            raise problem(
                "fleet/no-run",
                f"the store has no run of the plan {plan.name!r} to resume",
                where=store.address,
                fix="leave --resume out",
            )
        name = same[-1]
    new = Run.of(name or _free_name(plan, store), plan, cells)
    kept = store.run(name) if name else None
    if kept is None or kept.digest() == new.digest():
        return new if kept is None else replace(new, at=kept.at)
    raise problem(
        "fleet/run-taken",
        f"the store has another run {name!r}",
        where=store.address,
        why="that run had other models, another plan or other versions"
        if kept.plan_name == plan.name
        else f"that run belongs to the plan {kept.plan_name!r}",
        fix="leave --resume out; rows of unchanged cells are reused anyway"
        if settings.resume
        else "give another --name, or leave it out",
    )


def _put_run(store: Store, current: Run, *, is_needed: bool) -> tuple[str, ...]:
    """Keeps the run in the store. If no cell is to be computed, a store that can only be read is enough: then returns a
    note that the run is not kept."""
    try:
        store.put_run(current)
    except OnnxsmithError as error:
        if is_needed or error.problem.id != "fleet/store-refused":
            raise
        return (f"the run {current.name!r} is not stored, because the store is read-only: {error.problem.why}",)
    return ()


def _free_name(plan: Plan, store: Store) -> str:
    """Returns the plan's name with the time, and with a number if another run began in the same second."""
    name = f"{plan.name} {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d %H:%M:%S}"
    taken = set(store.run_names())
    return next(
        free for number in itertools.count(1) if (free := name if number == 1 else f"{name} {number}") not in taken
    )


def _wanted(cells: Sequence[Cell], store: Store, again: Sequence[str]) -> tuple[list[Cell], set[str]]:
    """Returns the cells to compute, each key once: those without a row, with a row that says nothing, whose kept files
    are gone, or whose outcome is in `again`. Returns the keys of those that have a row, too."""
    outcomes = [str(outcome) for outcome in Outcome]
    for name in again:
        if name not in (*outcomes, "all"):
            raise problem("fleet/plan", f"no outcome is called {name!r}", fix=in_place_of(name, [*outcomes, "all"]))
    unique = cell_lists.by_key(cells)
    with stage("read the store"):
        summaries = store.summaries(set(unique))
    redone = {*again, *map(str, UNDECIDED)}

    def is_wanted(cell: Cell) -> bool:
        summary = summaries.get(cell.key)
        if summary is None or "all" in redone or summary.outcome.value in redone:
            return True
        return bool(cell.keep) and not _is_complete(cell, store)

    # In an order of chance. The first cells stand for all, and the estimate of the time follows from them; and two runs
    # at the same time compute different cells, and then take those of each other.
    salt = os.urandom(8)
    wanted = sorted(
        (cell for cell in unique.values() if is_wanted(cell)),
        key=lambda cell: hashlib.sha256(salt + cell.key.encode()).digest(),
    )
    return wanted, {cell.key for cell in wanted if cell.key in summaries}


def _is_complete(cell: Cell, store: Store) -> bool:
    row = store.row(cell.key)
    return row is not None and kept_files.are_there(row.files, Path(cell.folder))


def _workers(plan: Plan, asked: int, scheduler: str) -> int:
    """Returns how many cells run at the same time: no more than their memory allows."""
    workers = asked or plan.workers
    if workers < 0:
        raise problem(
            "fleet/plan", f"{workers} is not a valid number of workers", fix="give --workers 2, or leave it out"
        )
    if scheduler or not plan.limits.bytes:
        return workers
    total = machine.HERE.memory()
    if total is None:
        return workers
    if plan.limits.bytes > total:
        raise problem(
            "fleet/memory",
            "a cell may use more memory than this machine has",
            where=str(plan.path),
            why=f"memory_limit is {plan.limits.bytes / 2**30:.3g} GiB, but the machine has {total / 2**30:.3g} GiB",
            fix="lower memory_limit, or run the plan on other machines, with the address of their scheduler: "
            "--engine dask --scheduler ADDRESS",
        )
    return max(1, min(workers or machine.HERE.cores(), total // plan.limits.bytes))


def _threads(workers: int) -> int:
    cores = machine.HERE.cores()
    return max(1, cores // (workers or cores))


def _seconds_before(store: Store, current: Run) -> dict[tuple[str, str, str], float]:
    """Returns how long the cells took in the latest other run of the plan."""
    others = [name for name in store.run_names() if name != current.name]
    earlier = store.run(others[-1]) if others else None
    if earlier is None:
        return {}
    rows = store.summaries(set(earlier.cells.values()))
    return {place: rows[key].seconds for place, key in earlier.cells.items() if key in rows and place in current.cells}


def _sizes(plan: Plan, cells: Sequence[Cell]) -> dict[str, int]:
    sizes = {}
    for model in {cell.model.name: cell.model for cell in cells}.values():
        files = [plan.folder / name for name in model.files]
        sizes[model.name] = sum(file.stat().st_size for file in files if file.exists())
    return sizes


def _again(path: str | Path, settings: Settings, name: str) -> str:
    return run_notes.again(path, name, settings.store, settings.shard, settings.scheduler)


def _of_part(current: Run, since: Earlier, cells: Sequence[Cell]) -> tuple[Run, Earlier]:
    """Returns a run and an earlier run without the cells of other parts. A cell that is in no part any more stays."""
    others = current.cells.keys() - {cell.place for cell in cells}
    shown = {place: key for place, key in current.cells.items() if place not in others}
    earlier = {place: outcome for place, outcome in since.outcomes.items() if place not in others}
    return replace(current, cells=shown), replace(since, outcomes=earlier)


def _timed(report: Report, clock: Clock) -> Report:
    return replace(report, parts=(*report.parts, Timing(clock.passed())))
