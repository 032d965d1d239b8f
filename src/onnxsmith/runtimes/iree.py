"""Runs IREE in its own process, like every native runtime."""

from __future__ import annotations

from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes._lacking import not_installed, refuse_other_devices, refuse_ports
from onnxsmith.runtimes.base import Options, Preparer, Runtime, Session, Source

_DTYPES = {
    "undefined", "bool", "float16", "float", "double",
    *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)),
}  # fmt: skip


class Iree(Runtime):
    """Runs IREE's compiler for the CPU of this machine, and IREE's runtime, in one thread.

    Dimensions stay symbolic if possible. If IREE refuses the model with symbols, or fails at some sizes, the model is
    compiled again with the sizes of the inputs; `Session.provider` says which of the two models ran. The compiler needs
    the rank and dtype of every tensor, so it gets the model with inferred shapes and with local functions inlined.
    Doubles stay doubles, but functions such as Sin are then missing. Some constants of unsigned integers are refused.
    Only tensors of numbers and bools can be inputs and outputs, and not in bfloat16, float8 or less than 8 bits. An
    input with a default is a constant, and cannot be given.
    """

    title = "IREE"
    package = "iree-base-compiler"
    extra = "iree"

    def missing(self) -> Problem | None:
        for module in ("iree", "iree.compiler", "iree.runtime"):
            if (absent := not_installed("IREE", module, "iree")) is not None:
                return absent
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    slowness: ClassVar[float] = 5.0
    """Allows five times the time of a native runtime. A choice: the model is first compiled to machine code."""

    def __init__(self, keep: int = 1) -> None:
        super().__init__("onnxsmith.runtimes._iree_host", "IREE", keep=keep)

    def turned(
        self, source: Source, options: Options, interface: Signature | None = None, read: ir.Model | None = None
    ) -> Turn:
        refuse_other_devices("IREE", options)
        return super().turned(source, options, interface, read)

    def check(self, interface: Signature) -> None:
        refuse_ports(
            "IREE",
            interface,
            lambda _, port: "" if port.dtype in _DTYPES else (f"IREE does not accept {port.dtype} tensors"),
        )

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        from onnxsmith.runtimes._sized import SizedTurn

        return SizedTurn(self, interface, request, options, weight)
