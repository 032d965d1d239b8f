"""Runs in the child process of `openvino.py`. Only this module imports openvino."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401 — registers bfloat16 and friends with numpy
import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._dtypes import bits, numpy_dtype, packed_nbytes, unpacked
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes.base import Array, Outputs, Value

_DTYPES = {
    "boolean": "bool", "f16": "float16", "f32": "float", "f64": "double", "bf16": "bfloat16",
    **{f"{sign}{size}": f"{kind}{size}" for sign, kind in (("i", "int"), ("u", "uint")) for size in (8, 16, 32, 64)},
    "i4": "int4", "u4": "uint4", "u2": "uint2", "f4e2m1": "float4e2m1",
    "f8e4m3": "float8e4m3fn", "f8e5m2": "float8e5m2", "f8e8m0": "float8e8m0",
}  # fmt: skip
"""Maps OpenVINO's dtypes to ONNX's names."""
_NOISE = re.compile(r"^\s*Check '.*failed at|While validating ONNX node|FrontEnd API failed with|^Exception from")
"""Matches lines of a message that only name a place in OpenVINO's code."""
_AS_BITS = ("bf16", "f8e4m3", "f8e5m2", "f8e8m0")
"""Lists the dtypes that numpy lacks; their values are sent as bits."""
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
"""Holds the options that make the CPU plugin compute in float32. By default, if the processor supports it, the plugin
computes in bfloat16, and quantises activations and caches."""


@dataclass
class Compiled:
    """Runs a compiled model, on one input at a time."""

    request: Any
    inputs: dict[str, Any]
    outputs: list[Any]


class Host(Hosting[Compiled]):
    """Holds compiled models. Outputs are named by index, because a port of OpenVINO may have any number of names."""

    def about(self) -> dict[str, Any]:
        return {"version": _library().__version__}

    def prepare(self, request: dict[str, Any]) -> tuple[Compiled, dict[str, Any]]:
        core = _library().Core()
        device = request["provider"].upper()
        if not any(name.split(".")[0] == device for name in core.available_devices):
            raise problem(
                "runtime/provider-missing",
                f"OpenVINO has no device {device} here",
                why=f"it has {', '.join(core.available_devices)}",
                fix="use --provider cpu",
            )
        exact = dict(EXACT) if device == "CPU" else {"INFERENCE_PRECISION_HINT": "f32"}
        wanted = exact if request["exact"] else {}
        if request["threads"]:
            wanted["INFERENCE_NUM_THREADS"] = str(request["threads"])
        compiled = core.compile_model(core.read_model(request["path"]), device, wanted)
        inputs = {name: port for port in compiled.inputs for name in port.get_names()}
        held = Compiled(compiled.create_infer_request(), inputs, list(compiled.outputs))
        return held, {"provider": f"OpenVINO {device}", "inputs": sorted(inputs)}

    def run(self, held: Compiled, values: dict[str, Value]) -> Outputs:
        self._set(held, values)
        held.request.infer()
        return {str(index): _array(held.request.get_tensor(port)) for index, port in enumerate(held.outputs)}

    def _set(self, held: Compiled, values: dict[str, Value]) -> None:
        for name, value in values.items():
            if name in held.inputs and isinstance(value, np.ndarray):
                held.request.set_tensor(held.inputs[name], _tensor(value, held.inputs[name].get_element_type()))

    def call(self, held: Compiled, values: dict[str, Value]) -> Callable[[], object]:
        self._set(held, values)
        infer: Callable[[], object] = held.request.infer
        return infer

    def around(self, held: Compiled, values: dict[str, Value]) -> str:
        return "infer of a request whose inputs are set"


def _library() -> Any:
    """Imports openvino without its telemetry. On import, telemetry would fork a process. This process would keep our
    pipes open after a crash, and the caller would wait for their end."""
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    return openvino


def _tensor(value: Array, kind: Any) -> Any:
    ov = _library()
    array = np.ascontiguousarray(value).reshape(value.shape)
    if bits(_DTYPES[kind.get_type_name()]) < 8:
        raise problem(
            "runtime/dtype-unsupported",
            f"OpenVINO accepts no {value.dtype} input from Python",
            why="its elements share bytes",
            fix="use --runtime onnxruntime or --runtime reference",
        )
    if kind.get_type_name() in _AS_BITS:
        raw = array.view(f"u{array.dtype.itemsize}")
        made = ov.Tensor(kind, ov.Shape(array.shape))
        made.data.reshape(-1).view(np.uint8)[:] = raw.reshape(-1).view(np.uint8)
        return made
    return ov.Tensor(array, shared_memory=False)


def _array(tensor: Any) -> Array:
    """Returns the values in OpenVINO's dtype. If numpy lacks the dtype, OpenVINO returns the values as bits in another
    dtype."""
    name = _DTYPES[tensor.get_element_type().get_type_name()]
    shape = tuple(tensor.get_shape())
    dtype, size = numpy_dtype(name), math.prod(shape)
    if not size:
        return np.empty(shape, dtype)
    data = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)
    if bits(name) < 8:
        return unpacked(data[: packed_nbytes(name, shape)].tobytes(), name)[:size].reshape(shape)
    return np.array(data.view(dtype)[:size].reshape(shape))


def translate(error: Exception) -> OnnxsmithError:
    """Turns OpenVINO's message into a problem with a fix."""
    text = str(error)
    missing = re.search(r"No conversion rule found for operations: (.+)", text)
    if missing:
        return problem(
            "runtime/unknown-operator",
            f"OpenVINO does not know the operator {missing[1].strip()}",
            why="OpenVINO has no conversion for the operator, or for this version of the operator",
            fix="replace the node, or use --runtime onnxruntime",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Exception from")]
    return problem(
        "runtime/failed",
        "OpenVINO refused or failed",
        why=_unconverted(text) or " ".join(lines)[:600] or type(error).__name__,
        fix="`onnxsmith explain runtime/failed` lists what these messages usually mean",
    )


def _unconverted(text: str) -> str:
    """Returns the operators that the frontend could not convert, with the reasons but without OpenVINO's own checks and
    files. Returns "" if the message is of another kind."""
    found = re.findall(r"^-- (\S+) with a message:\n(.*?)(?=^-- |^Summary:|\Z)", text, re.MULTILINE | re.DOTALL)
    told = []
    for operator, said in found:
        nodes = re.findall(r"ONNX node '<Node\([^)]*\): (.*?)>'", said)
        lines = [line.strip() for line in said.splitlines() if not _NOISE.search(line) and line.strip()]
        reason = " ".join(lines) or "no reason was given"
        told.append(f"{operator}{f' ({nodes[0]})' if nodes else ''}: {reason}")
    unsettled = [one for one in told if "input type dynamic" not in one]  # they follow from other errors
    return "; ".join(unsettled or told)[:600]


def main() -> None:
    """Runs the child process."""
    serve(Host(), translate)
