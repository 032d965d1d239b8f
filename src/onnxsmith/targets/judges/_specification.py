"""Asks onnx's own checks of the specification, which read a model and run nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Judge, Refusal, Target


class Specification(Target):
    """Asks the check of the method `says`."""

    runs = False
    reaches = "read and checked, not run"

    @abstractmethod
    def says(self, model: ir.Model) -> str:
        """Returns why the check refuses a model; "" if it accepts the model."""

    def missing(self) -> Problem | None:
        return None

    def version(self) -> str:
        return metadata.version("onnx")

    @contextmanager
    def judging(self) -> Iterator[Judge]:
        yield _Judge(self.says)


class _Judge(Judge):
    def __init__(self, says: Callable[[ir.Model], str]) -> None:
        self._says = says

    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        said = self._says(model)
        return Answer(Stage.NOT_TRIED, Refusal(said)) if said else Answer(Stage.PARSED)
