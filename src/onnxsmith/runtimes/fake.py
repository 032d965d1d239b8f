"""Provides a runtime whose answers come from a function, for tests and for trials of code that uses runtimes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxsmith.base.problem import Problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes._dtypes import numpy_dtype
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Session, Source, Value, onnx_source

Answer = Callable[[Feeds], Outputs]


class Fake(Runtime):
    """Checks feeds like every runtime, then calls `answer`. Without `answer`, returns zeros of the declared shapes."""

    title = "a fake, for tests"
    offered = False

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer

    def missing(self) -> Problem | None:
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return FakeSession(signature(load(onnx_source(source))), self._answer)


class FakeSession(Session):
    """Is a session of the fake runtime. Can be made directly, without a model."""

    provider = "fake"

    def __init__(self, signature: Signature, answer: Answer | None = None) -> None:
        self.signature = signature
        self._answer = answer

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature, one_size=True)
        return self._answer(feeds) if self._answer else self._zeros(feeds)

    def _zeros(self, feeds: Feeds) -> Outputs:
        sizes = {
            dim: size
            for port in self.signature.inputs
            if isinstance(array := feeds.get(port.name), np.ndarray)
            for dim, size in zip(port.shape or (), array.shape, strict=False)
            if isinstance(dim, str)
        }
        return {port.name: _zeros_of(port, sizes) for port in self.signature.outputs}


def _zeros_of(port: Port, sizes: dict[str, int]) -> Value:
    if port.kind == "sequence":
        return []
    shape = [1 if (size := dims.evaluate(dim, sizes)) is None else size for dim in port.shape or ()]
    if port.dtype == "string":
        return np.full(shape, "", dtype=object)
    return np.zeros(shape, numpy_dtype(port.dtype))
