"""The reference evaluator of the onnx package: slow, in Python, independent of every other runtime here."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.problem import Problem, problem
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Session, Source, onnx_source


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
            proto = ir.to_proto(ir.external_data.load_to_model(model.clone()))
            self._evaluator = ReferenceEvaluator(proto)
        except Exception as error:
            raise _failed(error) from error

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, dict(feeds))
        except Exception as error:
            raise _failed(error) from error
        return dict(zip((port.name for port in self.signature.outputs), results, strict=True))


def _failed(error: Exception) -> Exception:
    return problem(
        "runtime/failed",
        "the reference evaluator refused or failed",
        why=f"{type(error).__name__}: {error}"[:600],
        fix="it does not have every operator; try --runtime onnxruntime",
    )
