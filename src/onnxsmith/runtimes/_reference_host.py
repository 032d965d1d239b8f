"""Runs the reference evaluator in a child process, where a loop without an end can be stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Options, Outputs, Session, Value
from onnxsmith.runtimes.reference import Reference, traced


class Host:
    """Holds one session."""

    def __init__(self) -> None:
        self._session: Session | None = None

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers one request."""
        match request["do"]:
            case "about":
                return {}, {}
            case "prepare":
                self._session = Reference().prepare(Path(request["path"]), Options(provider=request["provider"]))
                return {"provider": self._session.provider}, {}
            case "run":
                assert self._session is not None
                return {}, self._session.run(values)
            case "trace":
                return {}, traced(Path(request["path"]), values)
            case other:
                raise ValueError(f"unknown request {other!r}")


def _translate(error: Exception) -> OnnxsmithError:
    return problem(
        "runtime/failed", "the reference evaluator refused or failed", why=f"{type(error).__name__}: {error}"[:600]
    )


def main() -> None:
    """The child's entry."""
    serve(Host(), _translate)
