"""A runtime for tests: a process that holds two models dies when it is asked to run one of them."""

from __future__ import annotations

import os
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes.base import Outputs, Value


class Host(Hosting[str]):
    """Gives back what it is fed, as long as it holds one model."""

    def about(self) -> dict[str, Any]:
        return {}

    def prepare(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return request["path"], {}

    def run(self, held: str, values: dict[str, Value]) -> Outputs:
        if len(self._held) > 1:
            os.abort()
        return {"y": values["x"]}


def main() -> None:
    """The child's entry."""
    serve(Host(), lambda error: problem("runtime/failed", str(error)))
