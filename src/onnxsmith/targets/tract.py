"""tract, Sonos' runtime in Rust, for phones and small devices."""

from __future__ import annotations

from onnxsmith.targets._by_runtime import RuntimeTarget


class Tract(RuntimeTarget):
    """tract on the CPU. It is asked about the file without the declared shapes of intermediate tensors and with local
    functions inlined, as `runtimes/tract.py` prepares it."""

    title = "tract (CPU)"
    runtime = "tract"
    told = ("asked without the declared shapes of intermediate tensors, and with local functions inlined",)
