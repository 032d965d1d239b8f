"""onnxruntime's child processes, kept for the next model: a suite runs thousands of them."""

from __future__ import annotations

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import Outputs, Value

_idle: list[Child] = []


class Pooled:
    """Stands where `Child` does. `close` gives the process back; one that crashed or ran out of time is let go."""

    def __init__(self, module: str, function: str, *, what: str) -> None:
        self._child: Child | None = _idle.pop() if _idle else Child(module, function, what=what)

    def ask(
        self,
        request: dict[str, object],
        values: dict[str, Value] | None = None,
        *,
        time_limit: float | None = None,
    ) -> tuple[dict[str, object], Outputs]:
        assert self._child is not None
        try:
            return self._child.ask(request, values, time_limit=time_limit or 60)
        except OnnxsmithError as error:
            if error.problem.id in ("runtime/died", "runtime/timeout"):
                self._drop()
            raise
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        if self._child is not None:
            _idle.append(self._child)
            self._child = None


def close() -> None:
    """Ends the processes that wait."""
    while _idle:
        _idle.pop().close()
