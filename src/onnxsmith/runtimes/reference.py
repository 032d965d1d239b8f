"""The reference evaluator of the onnx package: slow, in Python, independent of every other runtime here."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from onnxsmith.model.external import in_memory
from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.problem import Problem, problem
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Session, Source, Value, onnx_source


class Reference(Runtime):
    """onnx.reference: what the specification says, operator by operator, in numpy."""

    title = "ONNX reference evaluator"
    package = "onnx"

    def missing(self) -> Problem | None:
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        options = options or Options()
        if options.provider != "cpu":
            raise problem(
                "runtime/provider-missing",
                f"the reference evaluator runs on the CPU only, not on {options.provider!r}",
                fix="use --provider cpu, or --runtime onnxruntime",
            )
        return _Session(load(onnx_source(source)))


class _Session(Session):
    provider = "reference"

    def __init__(self, model: ir.Model) -> None:
        self.signature = signature(model)
        try:
            self._evaluator = ReferenceEvaluator(ir.to_proto(in_memory(model)))
        except Exception as error:
            raise _failed(error) from error

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, {name: _text(value) for name, value in feeds.items()})
        except Exception as error:
            raise _failed(error) from error
        return {port.name: _owned(value) for port, value in zip(self.signature.outputs, results, strict=True)}


def _text(value: Value) -> Value:
    """Strings in the one form that the evaluator gives back: Python's own, in an array of objects."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    if value is None or value.dtype.kind not in "OUS":
        return value
    texts = np.empty(value.shape, dtype=object)
    for place, item in np.ndenumerate(value):
        texts[place] = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
    return texts


def _owned(value: object) -> Value:
    """The value as an array of the caller's own: the evaluator gives numpy scalars, and its inputs and weights back."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_owned(item) for item in value]
    return np.array(value)


def _failed(error: Exception) -> Exception:
    return problem(
        "runtime/failed",
        "the reference evaluator refused or failed",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="it does not have every operator; try --runtime onnxruntime",
    )
