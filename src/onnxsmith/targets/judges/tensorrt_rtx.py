"""Asks TensorRT for RTX: NVIDIA's parser and builder, which need no GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import Feeds, Value, on_disk
from onnxsmith.targets.judges.base import LIMITS, Answer, Judge, Refusal, Target

_PACKAGES = ("tensorrt-rtx-cu13", "tensorrt-rtx-cu12", "tensorrt-rtx")
_MEMORY = 16 * 2**30
"""Limits the bytes that the builder may use in addition to the model. A choice: the builder maps libraries of 1 GB and
compiles kernels."""

_SLOWNESS = 5.0
"""Says how many times longer than a runtime the builder may take. A choice: the builder compiles kernels for the
graph."""


class TensorRtRtx(Target):
    """Parses and builds the model with TensorRT for RTX, for compute capability 8.9. Engines run on a GPU only, so
    nothing is run and compared here. An engine that can be built for RTX need not build with another TensorRT."""

    title = "TensorRT for RTX (SM 8.9)"
    runs = False

    def missing(self) -> Problem | None:
        if find_spec("tensorrt_rtx") is not None:
            return None
        return Problem(
            "target/not-installed",
            "TensorRT for RTX is not installed",
            where="tensorrt-rtx",
            fix="`pip install tensorrt-rtx-cu13` (proprietary, Linux and Windows)",
        )

    def version(self) -> str:
        for name in _PACKAGES:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return ""

    @contextmanager
    def judging(self) -> Iterator[Judge]:
        judge = _Judge()
        try:
            yield judge
        finally:
            judge.close()


def _memory(weight: int) -> int:
    usual = _call_limits.memory(None, model=weight)
    return max(usual, _MEMORY) if usual and _call_limits.MEMORY not in os.environ else usual


class _Judge(Judge):
    def __init__(self) -> None:
        self._child: Child | None = None

    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        weight = sum(tensor.nbytes for tensor in walk.initializer_tensors(model))
        values: dict[str, Value] = {
            name: value for name, value in (feeds or {}).items() if isinstance(value, np.ndarray)
        }
        request = {"do": "build", "memory": _memory(weight)}
        with on_disk(model, refer=False) as (path, _):
            request["path"] = str(path.absolute())
            try:
                head, _ = self._started().ask(
                    request, values, time_limit=_call_limits.seconds(None, model=weight, slowness=_SLOWNESS)
                )
            except OnnxsmithError as error:
                self.close()
                if error.problem.id in LIMITS:
                    raise
                return Answer(Stage.NOT_TRIED, Refusal(f"{error.problem.what} {error.problem.why}".strip()))
        reached = Stage.PARSED if head["parsed"] else Stage.NOT_TRIED
        if head["why"]:
            return Answer(reached, Refusal(head["why"], reached, tuple(head["nodes"])))
        return Answer(Stage.BUILT)

    def _started(self) -> Child:
        if self._child is None:
            self._child = Child("onnxsmith.targets.judges._tensorrt_rtx_host", "main", what="TensorRT for RTX")
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
