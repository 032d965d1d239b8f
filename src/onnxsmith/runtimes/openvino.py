"""OpenVINO, in a process of its own, like every native runtime."""

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
    "double": "its CPU plugin computes double in float, so that what comes back is not what it says",
    "string": "its kernels take numbers only",
    "complex64": "it has no complex numbers",
    "complex128": "it has no complex numbers",
}
_NARROWED = ("int64", "uint64", "uint32")
_INT32 = np.iinfo(np.int32)


class OpenVino(Runtime):
    """OpenVINO's CPU plugin, or the GPU or NPU one, with every computation in float32 at least.

    Inside, 64-bit integers are 32-bit ones: an input that does not fit is refused, a product that does not overflows.
    Double is refused where it goes in or out. Tensors in and out only; weights in external data are copied for a model
    that is not on disk.
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
                        _REFUSED[port.dtype] if port.kind == "tensor" else "it takes and gives tensors only",
                    )
                if what == "input" and port.dtype != "undefined" and bits(port.dtype) < 8:
                    raise _unsupported(f"{what} {port.name}: {port}", "elements that share a byte cannot be handed in")

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        return _Turn(self, interface, request, options, weight)


class _Turn(Turn):
    def run(self, feeds: Feeds) -> Outputs:
        for port in self.signature.inputs:
            value = feeds.get(port.name)
            where = f"input {port.name}: {port}"
            if value is not None and port.default and port.name not in self.head["inputs"]:
                raise _unsupported(where, "it makes a constant of every initializer, also of one that is an input")
            if isinstance(value, np.ndarray) and port.dtype in _NARROWED and value.dtype.kind in "iu" and value.size:
                low, high = int(value.min()), int(value.max())
                if low < _INT32.min or high > _INT32.max:
                    raise _unsupported(where, f"it computes with 32-bit integers; the values go from {low} to {high}")
        outputs = super().run(feeds)
        return {port.name: _typed(port, outputs[str(index)]) for index, port in enumerate(self.signature.outputs)}


def _typed(port: Port, value: Value) -> Value:
    """The value in the dtype that the model says, where that changes nothing."""
    assert isinstance(value, np.ndarray)
    if port.dtype == "undefined" or value.dtype == numpy_dtype(port.dtype):
        return value
    wanted = numpy_dtype(port.dtype)
    if not np.can_cast(value.dtype, wanted, "safe"):
        raise _unsupported(f"output {port.name}: {port}", f"it gives {value.dtype} there")
    return value.astype(wanted)


def _unsupported(where: str, why: str) -> OnnxsmithError:
    return problem(
        "runtime/dtype-unsupported",
        "OpenVINO cannot run this model, or this input, as ONNX means it",
        where=where,
        why=why,
        fix="use --runtime onnxruntime or --runtime reference",
    )
