"""Asks IREE, a compiler and runtime, for the CPU."""

from __future__ import annotations

from onnxsmith.targets.judges._by_runtime import RuntimeTarget


class Iree(RuntimeTarget):
    """Asks IREE's compiler for the CPU of this machine. IREE is asked about the model with inferred shapes and with
    local functions inlined, as `runtimes/_iree_host.py` prepares the model."""

    title = "IREE (CPU)"
    runtime = "iree"
    told = ("checked with inferred shapes and inlined local functions",)
