"""The runtimes that tries are made on, each in a process that stays."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from onnxsmith.model.signature import Signature
from onnxsmith.reduction.named import resolve
from onnxsmith.runtimes.base import Preparer, Session
from onnxsmith.runtimes.reference import Tracer


class Bench:
    """Prepares models on runtimes that are named by text. A call that takes longer than `time_limit` is stopped."""

    def __init__(self, time_limit: float) -> None:
        self.time_limit = time_limit
        self._preparers: dict[str, Preparer] = {}

    def prepare(
        self, runtime: str, path: Path, interface: Signature | None = None, *, time_limit: float | None = None
    ) -> Session:
        """A session that ends when the same runtime prepares the next model, with other options too."""
        chosen, options = resolve(runtime, time_limit or self.time_limit)
        name = runtime.partition(":")[0]
        if name not in self._preparers:
            self._preparers[name] = chosen.preparer()
        return self._preparers[name].prepare(path, options, interface=interface)

    def tracer(self) -> Tracer:
        """The reference evaluator, which tells what every tensor held."""
        found = self._preparers.setdefault("reference", Tracer())
        assert isinstance(found, Tracer)
        return found

    def close(self) -> None:
        """Ends every process."""
        while self._preparers:
            self._preparers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
