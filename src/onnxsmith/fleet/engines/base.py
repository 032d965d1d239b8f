"""The base class of engines. An engine is an executor of `concurrent.futures`, and what it says when it breaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Running:
    """A running engine. `workers` is the number of cells that run at the same time. `died` returns the names of workers
    that went away since the start."""

    executor: Executor
    workers: int
    died: Callable[[], Sequence[str]] = tuple


class Engine(ABC):
    """One engine. `runs_elsewhere`: its workers may have another onnxsmith and other files, so that an unexpected error
    of a cell can be theirs."""

    runs_elsewhere: ClassVar[bool] = False

    @abstractmethod
    def running(self, workers: int, scheduler: str) -> AbstractContextManager[Running]:
        """Starts the engine for a block. `workers` is 0 for as many as there are cores; `scheduler` is an address, or
        "".

        Raises:
            OnnxsmithError: `fleet/engine` if it cannot be started.
        """

    def worker_died(self, error: BaseException) -> bool:
        """Whether the error of a future says that workers died on which the cell ran, or waited to run."""
        return False

    def is_gone(self, error: BaseException) -> bool:
        """Whether the error of a future says that the engine is gone, so that nothing more can be run."""
        return False
