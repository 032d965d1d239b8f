"""Replaces a value by another: moves its readers, its declared shape and, if necessary, its name."""

from __future__ import annotations

import onnx_ir as ir

DECLARED = "onnxsmith.declared"
"""Is the key of a value's `meta` that holds the shape that the file declares under the value's name."""


def can_be_output(value: ir.Value, graph: ir.Graph | ir.Function | None) -> bool:
    """Whether a value can become an output of the graph: a node of that graph makes it, and it is not an output yet."""
    maker = value.producer()
    return maker is not None and maker.graph is graph and not value.is_graph_output()


def take_over(old: ir.Value, new: ir.Value, *, named: bool = False) -> None:
    """Replaces `old` by `new` everywhere. If `old` is a graph output, or with `named`, `new` gets the name of `old`,
    and `old` is renamed."""
    is_output = old.is_graph_output()
    new.shape = new.shape if new.shape is not None else old.shape
    new.type = new.type if new.type is not None else old.type
    old.replace_all_uses_with(new, replace_graph_outputs=is_output)
    if is_output or named:
        name = old.name
        old.name = f"{name}_replaced"
        new.name = name
        new.meta[DECLARED] = old.meta.get(DECLARED)
