"""Runs tries on runtimes, each in a process that stays alive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Options, Preparer, Session, parse
from onnxsmith.runtimes.reference import Reference, Tracer


def identity(runtime: str) -> tuple[str, Options]:
    """Returns the runtime and options that a text names: the same for `onnxruntime` and `onnxruntime:cpu`.

    Raises:
        OnnxsmithError: `runtime/unknown`, `runtime/unknown-option`, `runtime/not-installed`.
    """
    return runtime.partition(":")[0], parse(runtime)[1]


class Bench:
    """Prepares models on runtimes named by text. Stops a call that takes longer than `time_limit` seconds."""

    def __init__(self, time_limit: float) -> None:
        self.time_limit = time_limit
        self._preparers: dict[tuple[str, Options], Preparer] = {}

    def prepare(
        self, runtime: str, path: Path, interface: Signature | None = None, *, time_limit: float | None = None
    ) -> Session:
        """Returns a session. It ends when the same runtime with the same options prepares the next model."""
        chosen, options = parse(runtime)
        key = identity(runtime)
        if key not in self._preparers:
            self._preparers[key] = chosen.preparer()
        options = replace(options, time_limit=time_limit or self.time_limit)
        return self._preparers[key].prepare(path, options, interface=interface)

    def tracer(self) -> Tracer:
        """Returns the reference evaluator, which records the value of every tensor."""
        found = self._preparers.setdefault(("reference", Options()), Reference().preparer())
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
