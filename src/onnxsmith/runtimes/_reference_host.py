"""Runs the reference evaluator in a child process, where an endless loop can be stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes._reference_evaluator import Evaluator, read, traced
from onnxsmith.runtimes.base import Outputs, Session, Value


class Host(Hosting[Session]):
    """Holds evaluators."""

    def about(self) -> dict[str, Any]:
        return {}

    def prepare(self, request: dict[str, Any]) -> tuple[Session, dict[str, Any]]:
        weights = request["weights"]
        session = Evaluator(read(Path(request["path"]), None if weights is None else Path(weights)))
        return session, {"provider": session.provider}

    def run(self, held: Session, values: dict[str, Value]) -> Outputs:
        return held.run(values)

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        if request["do"] == "trace":
            return {}, traced(Path(request["path"]), values)
        return super().more(request, values)


def _translate(error: Exception) -> OnnxsmithError:
    return problem(
        "runtime/failed", "the reference evaluator refused or failed", why=f"{type(error).__name__}: {error}"[:600]
    )


def main() -> None:
    """Runs the child process."""
    serve(Host(), _translate)
