"""Hands cells to an engine, a few more than it can run, and takes note of those that end."""

from __future__ import annotations

import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from onnxsmith.base import clock
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.words import several
from onnxsmith.fleet import cell_run
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.engines.base import Engine, Running
from onnxsmith.fleet.remaining import Remaining, Work
from onnxsmith.fleet.stores.base import Store

_AHEAD = 2
"""Cells that are handed over for each worker, so that none waits for the next. A choice."""
_STEPS = 10
"""Lines of progress, where progress is lines: one for each tenth of the cells."""
_DIED = "each worker that ran this cell alone died"


Task = Callable[[Cell, str, bool], tuple[str, float, bool]]
"""A function of a cell, the address of the store, and whether to compute it anew. It puts the row into the store, and
returns the key, the seconds that it took, and whether the store did not have the row."""


@dataclass
class Progress:
    """What happened to the cells of a run. `ended` counts those that have a row now, and `taken` those among them whose
    row another run had put into the store. `alone` counts those that ran again, each alone, because their workers died;
    `died` names the workers that went away. `stopped` is why not all of the cells were computed."""

    ended: int = 0
    taken: int = 0
    alone: int = 0
    died: tuple[str, ...] = ()
    stopped: Problem | None = None
    estimates: list[tuple[int, float, float]] = field(default_factory=list)
    """The cells that were done, the seconds since the start, and the seconds that were then expected to be left."""

    @property
    def computed(self) -> int:
        """Returns the number of cells that this run computed."""
        return self.ended - self.taken


@dataclass(frozen=True)
class Job:
    """Cells to compute.

    `again` are the keys of those that have a row already. `before` has the seconds of an earlier run by place, `sizes`
    the bytes of models by name. `progress` tells what happened, also if the run is interrupted. `task` is what a worker
    calls for a cell.
    """

    cells: Sequence[Cell]
    store: Store
    again: Collection[str] = ()
    before: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    task: Task = cell_run.compute


def compute(job: Job, engine: Engine, *, workers: int = 0, scheduler: str = "") -> None:
    """Computes the cells, each once. Returns when all rows are in the store, or the engine or the store is gone: then
    `job.progress.stopped` says why.

    Raises:
        KeyboardInterrupt: after everything that ran was ended.
        OnnxsmithError: `fleet/engine` if the engine cannot be started.
    """
    if not job.cells:
        return
    with suppress(_OverError), engine.running(workers, scheduler) as running:
        try:
            _Flow(job, engine, running).run()
        finally:
            job.progress.died = tuple(running.died())


class _OverError(Exception):
    """The cells cannot go on, so that the engine has to end what runs."""


class _Flow:
    """The cells on their way through an engine."""

    def __init__(self, job: Job, engine: Engine, running: Running) -> None:
        self._job, self._engine, self._running, self._progress = job, engine, running, job.progress
        self._ended: queue.SimpleQueue[tuple[Cell, Future[tuple[str, float, bool]]]] = queue.SimpleQueue()
        self._queued: deque[tuple[str, str, str]] = deque()
        self._begun: dict[tuple[str, str, str], float] = {}
        work = [Work(cell.place, job.sizes.get(cell.model.name, 0), job.before.get(cell.place)) for cell in job.cells]
        self._suspects: list[Cell] = []
        self._is_alone = False
        self._remaining = Remaining(work, running.workers)
        self._start = time.monotonic()
        self._shown = -1
        self._text = ""

    def run(self) -> None:
        """Runs all cells. Cells whose workers died are run again at the end, each alone: an engine counts the death of
        a worker against every cell that ran or waited there, and only one of them is the cause."""
        self._run(self._job.cells, _AHEAD * self._running.workers)
        suspects, self._suspects = self._suspects, []
        self._progress.alone = len(suspects)
        self._is_alone = True
        self._run(suspects, 1)

    def _run(self, cells: Sequence[Cell], most: int) -> None:
        """Runs cells, and hands over no more than `most` at a time."""
        waiting = iter(cells)
        in_flight = 0
        for cell in itertools.islice(waiting, most):
            self._submit(cell)
            in_flight += 1
        self._show()
        while in_flight:
            cell, future = self._next()
            in_flight -= 1
            self._take(cell, future)
            self._show()
            following = next(waiting, None)
            if following is not None:
                self._submit(following)
                in_flight += 1

    def _submit(self, cell: Cell) -> None:
        self._queued.append(cell.place)
        self._note_begun()
        try:
            future = self._running.executor.submit(
                self._job.task, cell, self._job.store.address, cell.key in self._job.again
            )
        except Exception as error:
            raise self._over(cell, error) from error
        future.add_done_callback(partial(self._put, cell))

    def _note_begun(self) -> None:
        """Notes which cells run now: engines take them in the order in which they were handed over."""
        while self._queued and len(self._begun) < self._running.workers:
            self._begun[self._queued.popleft()] = time.monotonic()

    def _put(self, cell: Cell, future: Future[tuple[str, float, bool]]) -> None:
        self._ended.put((cell, future))

    def _next(self) -> tuple[Cell, Future[tuple[str, float, bool]]]:
        """Waits for a cell to end. It wakes now and then, so that Ctrl-C is heard on every system."""
        while True:
            try:
                return self._ended.get(timeout=1.0)
            except queue.Empty:
                continue

    def _take(self, cell: Cell, future: Future[tuple[str, float, bool]]) -> None:
        """Notes how a cell ended.

        Raises:
            _OverError: the others cannot go on.
        """
        error: BaseException | None
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        if cell.place in self._begun:
            del self._begun[cell.place]
        else:
            self._queued.remove(cell.place)
        self._note_begun()
        if error is not None and self._engine.worker_died(error):
            if not self._is_alone:
                self._suspects.append(cell)
                return
            self._keep_lost(cell)
        elif error is not None:
            raise self._over(cell, error) from error
        _, seconds, is_new = future.result() if error is None else (cell.key, 0.0, True)
        self._progress.ended += 1
        self._progress.taken += not is_new
        self._remaining.finished(cell.place, seconds)

    def _keep_lost(self, cell: Cell) -> None:
        try:
            self._job.store.put(cell_run.lost(cell, _DIED))
        except OnnxsmithError as error:
            raise self._over(cell, error) from error

    def _over(self, cell: Cell, error: BaseException) -> BaseException:
        """Notes why the run ends here, and returns what to raise: the error itself if it ends the process."""
        if isinstance(error, OnnxsmithError):
            self._progress.stopped = error.problem
        elif self._engine.is_gone(error):
            self._progress.stopped = Problem(
                "fleet/engine-lost",
                "the scheduler went away",
                why="the scheduler ended or the network connection to it broke while cells ran"
                + (f": {error}" if str(error) else ""),
                fix="start the scheduler and its workers again",
            )
        elif self._engine.runs_elsewhere and isinstance(error, Exception):
            self._progress.stopped = Problem(
                "fleet/worker-failed",
                "a worker could not run a cell",
                where=", ".join(cell.place),
                why=f"{type(error).__name__}: {error}",
                fix="install the same version of onnxsmith for the workers, and make the folder of the plan "
                "available to them under the same path",
            )
        else:
            return error
        return _OverError()

    def _show(self) -> None:
        done, total = self._progress.ended, len(self._job.cells)
        if done * _STEPS // total == self._shown and done:
            clock.advance(self._text, done, total)
            return
        self._shown = done * _STEPS // total
        left = self._remaining.seconds(self._elapsed())
        if left is not None:
            self._progress.estimates.append((done, time.monotonic() - self._start, left))
        self._text = f"{done:,} of {several(total, 'cell')}" + (f", about {_span(left)} left" if left else "")
        clock.advance(self._text, done, total)

    def _elapsed(self) -> dict[tuple[str, str, str], float]:
        now = time.monotonic()
        return {place: now - began for place, began in self._begun.items()}


def _span(seconds: float) -> str:
    """Writes a time with the precision of an estimate."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def with_threads(cells: Sequence[Cell], threads: int) -> list[Cell]:
    """Returns the cells with a limit of threads for each process."""
    return [replace(cell, threads=threads) for cell in cells]
