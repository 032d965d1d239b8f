"""Sorts the commands by the situation in which a user needs them."""

from __future__ import annotations

PURPOSE = "From a PyTorch model to an ONNX model that can be trusted."
"""Says what onnxsmith is for."""
SITUATIONS = (
    ("Start here", ("export", "simplify", "compare", "view", "doctor")),
    ("Look", ("inspect", "diff", "dump", "op", "explain")),
    ("When it fails or differs", ("diagnose", "reduce", "bisect")),
    (
        "Change a model",
        ("edit", "replace", "extract", "expose", "rename", "set-dim", "layout", "opset", "cast", "merge", "split",
         "inline", "outline", "strip"),
    ),
    ("Smaller and faster", ("quantize", "prune", "bench")),
    ("Ship", ("check", "run", "bundle", "baseline", "fleet", "guard", "verify-record", "mcp")),
)  # fmt: skip
"""Lists the commands under the title of their situation, the first to know first."""
