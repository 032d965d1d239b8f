"""IREE, a compiler and runtime on MLIR, on the CPU."""

from __future__ import annotations

from onnxsmith.targets._by_runtime import RuntimeTarget


class Iree(RuntimeTarget):
    """IREE's compiler for the CPU of this machine, and its runtime."""

    title = "IREE (CPU)"
    runtime = "iree"
    told = ("asked about the model with inferred shapes",)
