"""The driver: each cell is computed once, whatever happens to the engine, the workers and the store."""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base import rooms
from onnxsmith.fleet import driver, step_process
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.driver import Job
from onnxsmith.fleet.engines.base import Engine, Running
from onnxsmith.fleet.row import Outcome
from onnxsmith.fleet.store_problems import refused
from onnxsmith.fleet.stores.base import Store, closing, opened
from tests.fleets import Steps, cells_of, models, plan

LOCAL = rooms.members("onnxsmith.fleet.engines", Engine)["local"]


class DiedError(Exception):
    """The workers died that ran a cell."""


class GoneError(Exception):
    """The engine went away."""


class Played(Executor):
    """Runs a cell where it is handed over, or lets it end as `endings` say by the name of its model: `a` each time,
    `first a` the first time."""

    def __init__(self, endings: dict[str, Exception]) -> None:
        self.endings, self.handed_over, self.order = endings, Counter[str](), []

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        name = arguments[0].model.name
        self.handed_over[name] += 1
        self.order.append(name)
        if f"submit {name}" in self.endings:
            raise self.endings[f"submit {name}"]
        future: Future[Any] = Future()
        ending = self.endings.get(name) or self.endings.pop(f"first {name}", None)
        if ending is not None:
            future.set_exception(ending)
            return future
        try:
            future.set_result(work(*arguments, **named))
        except BaseException as error:  # noqa: BLE001 — as an executor does
            future.set_exception(error)
        return future


class PlayedEngine(Engine):
    """An engine without processes and threads."""

    def __init__(self, **endings: Exception) -> None:
        self.executor, self.ended_with = Played({name.replace("_", " "): one for name, one in endings.items()}), "?"

    @contextmanager
    def running(self, workers: int, scheduler: str) -> Iterator[Running]:
        try:
            yield Running(self.executor, workers or 2)
            self.ended_with = ""
        except BaseException as error:
            self.ended_with = type(error).__name__
            raise

    def worker_died(self, error: BaseException) -> bool:
        return isinstance(error, DiedError)

    def is_gone(self, error: BaseException) -> bool:
        return isinstance(error, GoneError)


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    """Nine cells of nine models, named a to i."""
    models(tmp_path, *(f"{name}.onnx" for name in "abcdefghi"))
    entries = ", ".join(f'{{ source = "{name}.onnx", name = "{name}" }}' for name in "abcdefghi")
    return cells_of(plan(tmp_path, f'models = [{entries}]\nsteps = ["check"]'))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing():
        yield opened(str(tmp_path / "s.sqlite"))


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_each_cell_is_computed_once(cells: list[Cell], store: Store, steps: Steps, workers: int) -> None:
    job, engine = Job(cells, store), PlayedEngine()
    driver.compute(job, engine, workers=workers)
    assert (job.progress.computed, job.progress.stopped) == (9, None)
    assert engine.executor.handed_over == Counter("abcdefghi")
    assert store.keys() == {cell.key for cell in cells}
    assert sorted(words[1] for words in steps.called) == [f"{name}.onnx" for name in "abcdefghi"]
    assert engine.ended_with == ""


def test_no_cells_start_no_engine(store: Store) -> None:
    engine = PlayedEngine()
    driver.compute(Job([], store), engine)
    assert engine.ended_with == "?"


def test_not_all_cells_are_handed_over_at_once(cells: list[Cell], store: Store, steps: Steps) -> None:
    """A store that is full after the first cell is noticed before all of them ran."""
    engine = PlayedEngine(a=OSError("x"))
    with pytest.raises(OSError, match="x"):
        driver.compute(Job(cells, store), engine, workers=2)
    assert engine.executor.handed_over.total() == 4
    assert engine.ended_with == "OSError"


@pytest.mark.parametrize("first", ["a", "d", "i"])
def test_a_cell_whose_workers_died_is_lost(cells: list[Cell], store: Store, steps: Steps, first: str) -> None:
    job = Job(cells, store)
    driver.compute(job, PlayedEngine(**{first: DiedError()}), workers=2)
    assert (job.progress.computed, job.progress.stopped) == (9, None)
    outcomes = {store.row(cell.key).model: store.row(cell.key).outcome for cell in cells}  # type: ignore[union-attr]
    assert outcomes == {**dict.fromkeys("abcdefghi", Outcome.DONE), first: Outcome.LOST}


def test_a_cell_that_only_waited_on_a_worker_that_died_is_run_again_alone(
    cells: list[Cell], store: Store, steps: Steps
) -> None:
    """`a` kills its worker, and `b` and `c` waited there: the engine blames all three."""
    job, engine = Job(cells, store), PlayedEngine(a=DiedError(), first_b=DiedError(), first_c=DiedError())
    driver.compute(job, engine, workers=2)
    assert (job.progress.computed, job.progress.stopped) == (9, None)
    outcomes = {store.row(cell.key).model: store.row(cell.key).outcome for cell in cells}  # type: ignore[union-attr]
    assert outcomes == {**dict.fromkeys("bcdefghi", Outcome.DONE), "a": Outcome.LOST}
    assert engine.executor.order == list("abcdefghiabc"), "those three again, after all others"
    assert job.progress.alone == 3
    assert "alone" in store.summaries({cells[0].key})[cells[0].key].headline


def test_a_suspect_is_the_only_cell_that_runs(cells: list[Cell], store: Store, steps: Steps) -> None:
    flow = driver._Flow(Job(cells, store), PlayedEngine(), Running(Played({"b": DiedError(), "f": DiedError()}), 4))
    most: dict[bool, int] = {}
    taken = flow._take

    def take(cell: Cell, future: Future[Any]) -> None:
        most[flow._is_alone] = max(most.get(flow._is_alone, 0), flow._ended.qsize() + 1)
        taken(cell, future)

    flow._engine.worker_died = lambda error: True  # type: ignore[method-assign]
    flow._take = take  # type: ignore[method-assign]
    flow.run()
    assert most == {False: 8, True: 1}


def test_all_workers_died(cells: list[Cell], store: Store, steps: Steps) -> None:
    job = Job(cells, store)
    driver.compute(job, PlayedEngine(**{name: DiedError() for name in "abcdefghi"}), workers=2)
    assert job.progress.computed == 9


@pytest.mark.parametrize("ending", ["e", "submit_e"])
def test_an_engine_that_went_away(cells: list[Cell], store: Store, steps: Steps, ending: str) -> None:
    job, engine = Job(cells, store), PlayedEngine(**{ending: GoneError("closed")})
    driver.compute(job, engine, workers=1)
    assert job.progress.stopped is not None
    assert job.progress.stopped.id == "fleet/engine-lost"
    assert "closed" in job.progress.stopped.why
    assert job.progress.computed >= 2
    assert len(store.keys()) == 4 + (ending == "e")
    assert engine.ended_with == "_OverError", "the engine ends what still runs"


def test_another_error_is_no_end_of_an_engine(cells: list[Cell], store: Store, steps: Steps) -> None:
    for ending in ("e", "submit_e"):
        with pytest.raises(ZeroDivisionError):
            driver.compute(
                Job(cells, store, again={cell.key for cell in cells}), PlayedEngine(**{ending: ZeroDivisionError()})
            )


@pytest.mark.parametrize("ending", ["e", "submit_e"])
def test_a_worker_elsewhere_that_cannot_run_a_cell(
    cells: list[Cell], store: Store, steps: Steps, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(PlayedEngine, "runs_elsewhere", True)
    job = Job(cells, store)
    driver.compute(job, PlayedEngine(**{ending: ModuleNotFoundError("onnxsmith")}), workers=1)
    assert job.progress.stopped is not None
    assert job.progress.stopped.id == "fleet/worker-failed"
    assert job.progress.stopped.where == "e, default, here"


@pytest.mark.parametrize("lost", [False, True])
def test_a_store_that_takes_no_more(
    cells: list[Cell], store: Store, steps: Steps, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    put = type(store).put

    def full(self: Store, row: Any) -> None:
        if row.model == "d":
            raise refused(self.address, OSError(errno.ENOSPC, "No space left on device"))
        put(self, row)

    monkeypatch.setattr(type(store), "put", full)
    job, engine = Job(cells, store), PlayedEngine(**({"d": DiedError()} if lost else {}))
    driver.compute(job, engine, workers=1)
    assert job.progress.stopped is not None
    assert job.progress.stopped.id == "fleet/store-full"
    assert job.progress.computed == (8 if lost else 3)
    assert engine.ended_with == "_OverError"


def test_a_row_that_is_there_is_computed_again_if_asked(cells: list[Cell], store: Store, steps: Steps) -> None:
    driver.compute(Job(cells, store), PlayedEngine())
    driver.compute(Job(cells, store, again={cells[0].key}), PlayedEngine())
    assert len(steps.called) == 10


def test_estimates(cells: list[Cell], store: Store, steps: Steps) -> None:
    job = Job(cells, store, before={cell.place: 1.0 for cell in cells}, sizes={cell.model.name: 10 for cell in cells})
    driver.compute(job, PlayedEngine(), workers=2)
    assert job.progress.estimates
    assert all(left >= 0 for _, _, left in job.progress.estimates)


def test_a_span() -> None:
    assert [driver._span(seconds) for seconds in (0.1, 89, 90, 600, 5400)] == [
        "1 s",
        "89 s",
        "2 min",
        "10 min",
        "1.5 h",
    ]


# The engine of this machine


def test_the_local_engine(cells: list[Cell], store: Store, steps: Steps) -> None:
    job = Job(cells, store)
    driver.compute(job, LOCAL, workers=3)
    assert job.progress.computed == len(store.keys()) == 9


@pytest.mark.parametrize("workers", [1, 3])
def test_so_many_cells_run_at_the_same_time(cells: list[Cell], store: Store, steps: Steps, workers: int) -> None:
    running, most, lock = set(), [0], threading.Lock()
    full = threading.Event()

    def count() -> None:
        with lock:
            running.add(threading.get_ident())
            most[0] = max(most[0], len(running))
            if len(running) == workers:
                full.set()
        assert full.wait(60)
        with lock:
            running.discard(threading.get_ident())

    steps.endings = {"check": count}
    driver.compute(Job(cells, store), LOCAL, workers=workers)
    assert most == [workers]


def test_the_number_of_workers_is_that_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.base.system import machine

    monkeypatch.setattr(type(machine.HERE), "cores", lambda self: 7)
    with LOCAL.running(0, "") as running:
        assert running.workers == 7
        assert isinstance(running.executor, ThreadPoolExecutor)


def test_an_interrupt_ends_all(
    cells: list[Cell], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are ended, cells that wait do not begin, and no row is written."""
    started: list[int] = []
    real = step_process.run

    def sleeping(verb: str, words: object, **how: Any) -> Any:
        script = tmp_path / "python"
        return real("check", [], **{**how, "python": str(script)})

    (tmp_path / "python").write_text("#!/bin/sh\necho $$ >> pids\nsleep 1000\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(step_process, "run", sleeping)

    def interrupted(self: object) -> Any:
        end = time.monotonic() + 60
        while len(started) < 2 and time.monotonic() < end:
            started[:] = list(map(int, (tmp_path / "pids").read_text().split())) if (tmp_path / "pids").exists() else []
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(driver._Flow, "_next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        driver.compute(Job(cells, store), LOCAL, workers=2)
    assert len(started) == 2
    assert not any(Path(f"/proc/{process}").exists() for process in started)
    assert store.keys() == set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cell")]


def test_a_row_that_another_run_wrote_meanwhile_is_taken(cells: list[Cell], store: Store, steps: Steps) -> None:
    """The driver asks the store before it starts. A cell that has a row since then is not computed again."""
    job = Job(cells, store)
    driver.compute(Job(cells[:4], store), PlayedEngine(), workers=1)
    driver.compute(job, PlayedEngine(), workers=1)
    assert (job.progress.ended, job.progress.taken, job.progress.computed) == (9, 4, 5)
    assert len(steps.called) == 9


def test_workers_that_went_away_are_named(cells: list[Cell], store: Store, steps: Steps) -> None:
    class Losing(PlayedEngine):
        @contextmanager
        def running(self, workers: int, scheduler: str) -> Iterator[Running]:
            yield Running(self.executor, 2, lambda: ["tcp://host:1"])

    job = Job(cells, store)
    driver.compute(job, Losing())
    assert job.progress.died == ("tcp://host:1",)


def test_a_scheduler_that_went_away_says_so_in_a_sentence(cells: list[Cell], store: Store, steps: Steps) -> None:
    job = Job(cells, store)
    driver.compute(job, PlayedEngine(b=GoneError()), workers=1)
    assert job.progress.stopped is not None
    assert job.progress.stopped.why == "the scheduler ended or the network connection to it broke while cells ran"
