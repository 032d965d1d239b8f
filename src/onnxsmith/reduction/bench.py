"""The runtimes that tries are made on, each in a process that stays."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self

from onnxsmith.model.signature import Signature
from onnxsmith.reduction.named import resolve
from onnxsmith.runtimes.base import Options, Preparer, Session
from onnxsmith.runtimes.reference import Tracer


class Bench:
    """Prepares models on runtimes that are named by text. A call that takes longer than `time_limit` is stopped."""

    def __init__(self, time_limit: float) -> None:
        self.time_limit = time_limit
        self._stack = contextlib.ExitStack()
        self._preparers: dict[tuple[str, float], Preparer] = {}
        self._tracer: Tracer | None = None

    def prepare(
        self, runtime: str, path: Path, interface: Signature | None = None, *, time_limit: float | None = None
    ) -> Session:
        """A session that ends when the same runtime prepares the next model."""
        limit = time_limit or self.time_limit
        if (runtime, limit) not in self._preparers:
            chosen, options = resolve(runtime, limit)
            self._preparers[runtime, limit] = self._stack.enter_context(chosen.preparer(options))
        return self._preparers[runtime, limit].prepare(path, interface)

    def tracer(self) -> Tracer:
        """The reference evaluator, which tells what every tensor held."""
        if self._tracer is None:
            self._tracer = self._stack.enter_context(Tracer(Options(time_limit=self.time_limit)))
        return self._tracer

    def close(self) -> None:
        """Ends every process."""
        self._stack.close()
        self._preparers.clear()
        self._tracer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
