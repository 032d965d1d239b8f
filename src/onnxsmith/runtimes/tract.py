"""Tract, in its own process like every native runtime."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from onnxsmith.model.files.load import load
from onnxsmith.model.graph import walk
from onnxsmith.model.graph.signature import Port, Signature
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.runtimes._dtypes import numpy_dtype
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Runtime, Session, Source, Value, onnx_source

_DTYPES = {
    "undefined", "bool", "float16", "float", "double",
    *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)),
}  # fmt: skip


class Tract(Runtime):
    """Sonos' tract, an inference engine in Rust, on the CPU in one thread.

    It keeps dimensions symbolic where it can. A model that it refuses with symbols, or sizes at which it fails, are
    prepared again with the sizes of the inputs; `Session.provider` says which of the two ran. Only tensors of numbers
    and bools can be inputs and outputs, and not in bfloat16, float8 or less than 8 bits. An input with a default is a
    constant, and cannot be given. Local functions are inlined, and declared shapes of intermediate tensors removed,
    before tract sees the model. Tract reads every IR version and opset, and does not check them. Weights in external
    data are copied if the model is in memory or was changed so.
    """

    title = "tract"
    package = "tract"
    extra = "tract"

    def missing(self) -> Problem | None:
        if find_spec("tract") is not None:
            return None
        return Problem(
            "runtime/not-installed",
            "tract is not installed",
            fix="pip install 'onnxsmith[tract]'; or use --runtime onnxruntime or --runtime reference",
        )

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int = 1) -> None:
        super().__init__("onnxsmith.runtimes._tract_host", "tract", refers=False, keep=keep)

    def turned(self, source: Source, options: Options, interface: Signature | None = None) -> Turn:
        if options.provider != "cpu":
            raise problem(
                "runtime/provider-missing",
                f"tract runs on the CPU only, not on {options.provider!r}",
                fix="use --provider cpu, or --runtime onnxruntime",
            )
        return super().turned(_plain(source), options, interface)

    def check(self, interface: Signature) -> None:
        for what, ports in (("input", interface.inputs), ("output", interface.outputs)):
            for port in ports:
                if port.kind != "tensor" or port.dtype not in _DTYPES:
                    raise _unsupported(
                        f"{what} {port.name}: {port}",
                        f"it has no {port.dtype} tensors" if port.kind == "tensor" else "it takes and returns tensors",
                    )

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        ports = [(port.name, port.dtype, port.shape) for port in interface.inputs]
        return _Turn(self, interface, {**request, "inputs": ports}, options, weight)


class _Turn(Turn):
    def begin(self) -> None:
        super().begin()
        self._tell()

    def run(self, feeds: Feeds) -> Outputs:
        for port in self.signature.inputs:
            if feeds.get(port.name) is not None and port.default and port.name not in self.head["inputs"]:
                raise _unsupported(f"input {port.name}: {port}", "it makes every initializer a constant")
        outputs = super().run(feeds)
        self.head["shapes"] = str(outputs.pop("shapes"))
        self._tell()
        return {port.name: _typed(port, outputs[str(index)]) for index, port in enumerate(self.signature.outputs)}

    def _tell(self) -> None:
        """Says whether the last run, or the next one, is of the model with symbols."""
        ports = self.signature.inputs
        fixed = all(port.shape is not None and all(isinstance(dim, int) for dim in port.shape) for port in ports)
        symbolic = self.head["shapes"] == "symbolic"
        self.is_built = fixed or symbolic
        how = ", symbolic shapes" if symbolic else ", shapes fixed to those of the inputs"
        self.provider = "tract" if fixed else f"tract{how}"


def _plain(source: Source) -> Source:
    """The model without calls of local functions, which tract takes for operators that it lacks, and without the
    declared shapes of intermediate tensors: tract trusts them, and their symbols have no sizes there."""
    model = load(onnx_source(source))
    copy, reason = inlined(model)
    if reason:
        raise problem(
            "runtime/unknown-operator",
            "tract has no local functions",
            why=reason,
            fix="use --runtime onnxruntime or --runtime reference",
        )
    results = {value for graph in walk.main_graphs(copy) for value in graph.outputs}
    declared = False
    for node in walk.all_nodes(copy):
        for value in node.outputs:
            if value not in results and value.shape is not None:
                value.shape = value.type = None
                declared = True
    return copy if declared or model.functions else source


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
        "tract cannot run this model, or this input, as ONNX specifies it",
        where=where,
        why=why,
        fix="use --runtime onnxruntime or --runtime reference",
    )
