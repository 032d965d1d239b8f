"""Words the refusals of runtimes that accept less than ONNX allows."""

from __future__ import annotations

from collections.abc import Callable, Container
from importlib.util import find_spec

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes._dtypes import numpy_dtype
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Value

_OTHERS = "use --runtime onnxruntime or --runtime reference"


def not_installed(what: str, module: str, extra: str) -> Problem | None:
    """Returns a problem if the library of the runtime is not installed; else None."""
    if find_spec(module) is not None:
        return None
    return Problem(
        "runtime/not-installed",
        f"{what} is not installed",
        fix=f'`pip install "onnxsmith[{extra}]"`',
    )


def unsupported(what: str, where: str, why: str) -> OnnxsmithError:
    """Returns the error for a dtype, an input or an output that the runtime does not support."""
    return problem(
        "runtime/dtype-unsupported",
        f"{what} cannot run this model, or this input, as ONNX specifies it",
        where=where,
        why=why,
        fix=_OTHERS,
    )


def refuse_other_devices(what: str, options: Options) -> None:
    """Raises if a device other than the CPU was requested.

    Raises:
        OnnxsmithError: `runtime/provider-missing`.
    """
    if options.provider != "cpu":
        raise problem(
            "runtime/provider-missing",
            f"onnxsmith runs {what} only on the CPU, not on {options.provider!r}",
            fix="use --provider cpu, or --runtime onnxruntime",
        )


def refuse_ports(what: str, interface: Signature, reason: Callable[[str, Port], str]) -> None:
    """Raises if an input or output is no tensor, or if `reason("input" or "output", port)` is not empty.

    Raises:
        OnnxsmithError: `runtime/dtype-unsupported`.
    """
    for kind, ports in (("input", interface.inputs), ("output", interface.outputs)):
        for port in ports:
            why = reason(kind, port) if port.kind == "tensor" else "the runtime accepts and returns only tensors"
            if why:
                raise unsupported(what, f"{kind} {port.name}: {port}", why)


def refuse_defaults(what: str, interface: Signature, feeds: Feeds, inputs: Container[str]) -> None:
    """Raises if a value is given for an input that is not among `inputs`, because the runtime made the input's default
    a constant.

    Raises:
        OnnxsmithError: `runtime/dtype-unsupported`.
    """
    for port in interface.inputs:
        if feeds.get(port.name) is not None and port.default and port.name not in inputs:
            why = "the runtime makes every initializer a constant, even if the initializer is also an input"
            raise unsupported(what, f"input {port.name}: {port}", why)


def by_name(what: str, interface: Signature, outputs: Outputs) -> Outputs:
    """Names outputs that were returned by index, and converts them to the dtypes that the model declares.

    Raises:
        OnnxsmithError: `runtime/dtype-unsupported` if the dtype cannot be converted exactly.
    """
    return {port.name: _typed(what, port, outputs[str(index)]) for index, port in enumerate(interface.outputs)}


def _typed(what: str, port: Port, value: Value) -> Value:
    assert isinstance(value, np.ndarray)
    if port.dtype == "undefined" or value.dtype == numpy_dtype(port.dtype):
        return value
    wanted = numpy_dtype(port.dtype)
    if not np.can_cast(value.dtype, wanted, "safe"):
        raise unsupported(what, f"output {port.name}: {port}", f"it returns {value.dtype} there")
    return value.astype(wanted)
