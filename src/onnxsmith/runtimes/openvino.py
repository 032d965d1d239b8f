"""Runs OpenVINO in its own process, like every native runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxsmith.base.problem import Problem
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes._dtypes import bits
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes._lacking import by_name, not_installed, refuse_defaults, refuse_ports, unsupported
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Runtime, Session, Source

_REFUSED = {
    "double": "OpenVINO's CPU plugin computes double in float, so results have fewer digits than their dtype suggests",
    "string": "OpenVINO's kernels accept only numbers",
    "complex64": "OpenVINO has no complex numbers",
    "complex128": "OpenVINO has no complex numbers",
}
_NARROWED = ("int64", "uint64", "uint32")
_INT32 = np.iinfo(np.int32)


class OpenVino(Runtime):
    """Runs OpenVINO's plugin for CPU, GPU or NPU, with every computation at least in float32.

    OpenVINO computes 64-bit integers in 32 bits: a larger input is refused, a larger computed value overflows. Inputs
    and outputs in double are refused. Only tensors can be inputs and outputs. For a model in memory, weights in
    external data are copied.
    """

    title = "OpenVINO"
    package = "openvino"
    extra = "openvino"
    providers = ("cpu", "gpu", "npu")
    takes_threads = True
    precision = "OpenVINO computed in float32; its default is bfloat16 or float16 if the device supports these"

    def missing(self) -> Problem | None:
        return not_installed("OpenVINO", "openvino", "openvino")

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int = 1) -> None:
        super().__init__("onnxsmith.runtimes._openvino_host", "OpenVINO", refers=False, keep=keep)

    def check(self, interface: Signature) -> None:
        refuse_ports("OpenVINO", interface, _reason)

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        return _Turn(self, interface, request, options, weight)


class _Turn(Turn):
    def run(self, feeds: Feeds) -> Outputs:
        refuse_defaults("OpenVINO", self.signature, feeds, self.head["inputs"])
        for port in self.signature.inputs:
            value = feeds.get(port.name)
            if isinstance(value, np.ndarray) and port.dtype in _NARROWED and value.dtype.kind in "iu" and value.size:
                low, high = int(value.min()), int(value.max())
                if low < _INT32.min or high > _INT32.max:
                    why = f"OpenVINO computes with 32-bit integers, but the values are {low} to {high}"
                    raise unsupported("OpenVINO", f"input {port.name}: {port}", why)
        return by_name("OpenVINO", self.signature, super().run(feeds))


def _reason(kind: str, port: Port) -> str:
    if kind == "input" and port.dtype not in _REFUSED and port.dtype != "undefined" and bits(port.dtype) < 8:
        return "in OpenVINO, elements of an input cannot share bytes"
    return _REFUSED.get(port.dtype, "")
