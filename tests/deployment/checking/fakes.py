"""A target whose answers a test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Judge, Target


class Fake(Target):
    """A target whose answers a test chooses."""

    title = "fake"

    def __init__(self, ask: Any, runtime: str | None = None, missing: Problem | None = None) -> None:
        self._ask, self._missing = ask, missing
        self.runtime = runtime  # type: ignore[misc]
        self.runs = runtime is not None  # type: ignore[misc]

    def missing(self) -> Problem | None:
        return self._missing

    def version(self) -> str:
        return "1"

    @contextmanager
    def judging(self) -> Iterator[Judge]:
        outer = self

        class _Judge(Judge):
            def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
                answer: Answer = outer._ask(model, feeds)
                return answer

        yield _Judge()
