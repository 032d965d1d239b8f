"""Runs cells on this machine, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from onnxsmith.base.system import machine
from onnxsmith.fleet import step_process
from onnxsmith.fleet.engines.base import Engine, Running


class Local(Engine):
    """A pool of threads. Each starts the processes of one cell at a time and waits for them, so that the pool itself
    needs neither time nor memory."""

    @contextmanager
    def running(self, workers: int, scheduler: str) -> Iterator[Running]:
        count = workers or machine.HERE.cores()
        with step_process.stoppable():
            pool = ThreadPoolExecutor(count, thread_name_prefix="cell")
            try:
                yield Running(pool, count)
            except BaseException:
                step_process.stop_all()
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
