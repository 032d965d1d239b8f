"""Runs tract in its own process, like every native runtime."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import Problem, problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes._lacking import not_installed, refuse_other_devices, refuse_ports
from onnxsmith.runtimes.base import Options, Preparer, Runtime, Session, Source, onnx_source

_DTYPES = {
    "undefined", "bool", "float16", "float", "double",
    *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)),
}  # fmt: skip


class Tract(Runtime):
    """Runs Sonos' tract, an inference engine in Rust, on the CPU in one thread.

    Dimensions stay symbolic if possible. If tract refuses the model with symbols, or fails at some sizes, the model is
    prepared again with the sizes of the inputs; `Session.provider` says which of the two models ran. Only tensors of
    numbers and bools can be inputs and outputs, and not in bfloat16, float8 or less than 8 bits. An input with a
    default is a constant, and cannot be given. Local functions are inlined, and declared shapes of intermediate tensors
    removed, before tract sees the model. Tract does not check the IR version and the opset. Weights in external data
    are copied if the model is in memory, or was changed in this way.
    """

    title = "tract"
    package = "tract"
    extra = "tract"

    def missing(self) -> Problem | None:
        return not_installed("tract", "tract", "tract")

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int = 1) -> None:
        super().__init__("onnxsmith.runtimes._tract_host", "tract", refers=False, keep=keep)

    def turned(
        self, source: Source, options: Options, interface: Signature | None = None, read: ir.Model | None = None
    ) -> Turn:
        refuse_other_devices("tract", options)
        return super().turned(_plain(source), options, interface)

    def check(self, interface: Signature) -> None:
        refuse_ports(
            "tract", interface, lambda _, port: "" if port.dtype in _DTYPES else f"tract has no {port.dtype} tensors"
        )

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        ports = [(port.name, port.dtype, port.shape) for port in interface.inputs]
        from onnxsmith.runtimes._sized import SizedTurn

        return SizedTurn(self, interface, {**request, "inputs": ports}, options, weight)


def _plain(source: Source) -> Source:
    """Returns the model without calls of local functions, which tract takes for missing operators. Also removes the
    declared shapes of intermediate tensors: tract trusts them, and their symbols have no sizes in tract."""
    model = load(onnx_source(source))
    from onnxsmith.graph.surgery.inlining import inlined

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
