"""Runs cells on a cluster of Dask, or on one that it starts here."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import problem
from onnxsmith.base.system import machine
from onnxsmith.fleet import step_process
from onnxsmith.fleet.engines.base import Engine, Running

_CONNECT = 15.0
"""Seconds to wait for a scheduler. A choice: a scheduler on the same network answers in one."""
_WORKERS = 60.0
"""Seconds to wait for the first worker. A choice: a queue of a cluster may start it later."""
_SILENT = logging.CRITICAL + 1
"""A level above that of every message."""


class Dask(Engine):
    """`dask.distributed`. With an address, its workers need the same onnxsmith, and the same paths for the models and
    the store. Without one, a scheduler and a worker with threads are started in this process."""

    runs_elsewhere = True

    @contextmanager
    def running(self, workers: int, scheduler: str) -> Iterator[Running]:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise problem(
                "fleet/engine",
                "Dask is not installed",
                why=str(error),
                fix='`pip install "onnxsmith[fleet]"`; or leave --engine out',
            ) from error
        with step_process.stoppable(), _quiet():
            cluster: Any = None
            client: Any
            try:
                if scheduler:
                    client = distributed.Client(scheduler, timeout=_CONNECT, set_as_default=False)
                else:
                    count = workers or machine.HERE.cores()
                    cluster = distributed.LocalCluster(
                        n_workers=1,
                        threads_per_worker=count,
                        processes=False,
                        dashboard_address=None,
                        memory_limit=None,
                    )
                    client = distributed.Client(cluster, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                if cluster is not None:
                    cluster.close()
                raise problem(
                    "fleet/engine",
                    "the scheduler does not answer",
                    where=scheduler,
                    why=f"{type(error).__name__}: {error}",
                    fix=f"start the scheduler with `dask scheduler` and workers with `dask worker {scheduler}`; or "
                    "leave --scheduler out",
                ) from error
            try:
                threads = _threads(client, scheduler)
                seen = _workers_of(client)
                yield Running(client.get_executor(pure=False), threads, lambda: _gone(client, seen))
            except BaseException:
                step_process.stop_all()
                raise
            finally:
                with suppress(Exception):
                    client.close(timeout=2)
                if cluster is not None:
                    with suppress(Exception):
                        cluster.close(timeout=5)

    def worker_died(self, error: BaseException) -> bool:
        return type(error).__name__ == "KilledWorker"

    def is_gone(self, error: BaseException) -> bool:
        return type(error).__name__ in ("CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError")


_LOUD = ("distributed", "tornado", "asyncio")
"""The loggers of Dask and of what it is built on."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Dask from printing warnings for each worker that dies and each result that it computes again, and stacks of
    calls for a scheduler that went away: the driver tells what matters. Each of its loggers has a level and an output
    of its own."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOUD]
    loggers = [logging.getLogger(name) for name in {*names, *_LOUD}]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(_SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _workers_of(client: Any) -> set[str]:
    """Returns the workers that the scheduler has, by address."""
    if client.status != "running":  # it would wait for a scheduler that went away
        return set()
    with suppress(Exception):
        return set(client.nthreads())
    return set()


def _gone(client: Any, seen: set[str]) -> list[str]:
    """Returns the workers that were there at the start and are not any more; none if the scheduler is gone, too."""
    now = _workers_of(client)
    return sorted(seen - now) if now else []


def _threads(client: Any, scheduler: str) -> int:
    """Returns the number of threads of all workers, after there is one.

    Raises:
        OnnxsmithError: `fleet/engine` if no worker comes.
    """
    with stage("wait for a worker"):
        try:
            client.wait_for_workers(1, timeout=_WORKERS)
        except TimeoutError as error:
            raise problem(
                "fleet/engine",
                "the scheduler has no worker",
                where=scheduler,
                why=f"no worker connected within {_WORKERS:g} s",
                fix=f"start workers: `dask worker {scheduler} --nworkers 1 --nthreads 2`",
            ) from error
    return sum(client.nthreads().values())
