"""OpenVINO, in its own process like every native runtime."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from onnxsmith.model.graph.signature import Port, Signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.runtimes._dtypes import bits, numpy_dtype
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Runtime, Session, Source, Value

_REFUSED = {
    "double": "its CPU plugin computes double in float, so its results have fewer digits than their dtype says",
    "string": "its kernels take numbers only",
    "complex64": "it has no complex numbers",
    "complex128": "it has no complex numbers",
}
_NARROWED = ("int64", "uint64", "uint32")
_INT32 = np.iinfo(np.int32)


class OpenVino(Runtime):
    """OpenVINO's CPU plugin, or the GPU or NPU one, with every computation at least in float32.

    OpenVINO computes 64-bit integers in 32 bits: an input beyond 32 bits is refused, a computed value beyond them
    overflows. Inputs and outputs in double are refused. Only tensors can be inputs and outputs. For a model in memory,
    weights in external data are copied.
    """

    title = "OpenVINO"
    package = "openvino"
    extra = "openvino"
    providers = ("cpu", "gpu", "npu")
    takes_threads = True

    def missing(self) -> Problem | None:
        if find_spec("openvino") is not None:
            return None
        return Problem(
            "runtime/not-installed",
            "OpenVINO is not installed",
            fix="pip install 'onnxsmith[openvino]'; or use --runtime onnxruntime or --runtime reference",
        )

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int = 1) -> None:
        super().__init__("onnxsmith.runtimes._openvino_host", "OpenVINO", refers=False, keep=keep)

    def check(self, interface: Signature) -> None:
        for what, ports in (("input", interface.inputs), ("output", interface.outputs)):
            for port in ports:
                if port.kind != "tensor" or port.dtype in _REFUSED:
                    raise _unsupported(
                        f"{what} {port.name}: {port}",
                        _REFUSED[port.dtype] if port.kind == "tensor" else "it takes and returns tensors only",
                    )
                if what == "input" and port.dtype != "undefined" and bits(port.dtype) < 8:
                    raise _unsupported(f"{what} {port.name}: {port}", "elements of an input cannot share bytes")

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        return _Turn(self, interface, request, options, weight)


class _Turn(Turn):
    def run(self, feeds: Feeds) -> Outputs:
        for port in self.signature.inputs:
            value = feeds.get(port.name)
            where = f"input {port.name}: {port}"
            if value is not None and port.default and port.name not in self.head["inputs"]:
                raise _unsupported(where, "it makes every initializer a constant, even if it is an input")
            if isinstance(value, np.ndarray) and port.dtype in _NARROWED and value.dtype.kind in "iu" and value.size:
                low, high = int(value.min()), int(value.max())
                if low < _INT32.min or high > _INT32.max:
                    raise _unsupported(where, f"it computes with 32-bit integers; the values are {low} to {high}")
        outputs = super().run(feeds)
        return {port.name: _typed(port, outputs[str(index)]) for index, port in enumerate(self.signature.outputs)}


def _typed(port: Port, value: Value) -> Value:
    """The value in the dtype that the model declares, if the conversion is exact; else raises."""
    assert isinstance(value, np.ndarray)
    if port.dtype == "undefined" or value.dtype == numpy_dtype(port.dtype):
        return value
    wanted = numpy_dtype(port.dtype)
    if not np.can_cast(value.dtype, wanted, "safe"):
        raise _unsupported(f"output {port.name}: {port}", f"it returns {value.dtype} there")
    return value.astype(wanted)


def _unsupported(where: str, why: str) -> OnnxsmithError:
    return problem(
        "runtime/dtype-unsupported",
        "OpenVINO cannot run this model, or this input, as ONNX specifies it",
        where=where,
        why=why,
        fix="use --runtime onnxruntime or --runtime reference",
    )
