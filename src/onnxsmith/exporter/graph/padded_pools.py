"""Protects a Pad before a MaxPool from a wrong fusion: onnxruntime turns it into the pool's own padding, which is
-inf."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names

_SINCE = 18
"""Pad has the input `axes` from this opset on (ONNX operator schema)."""


def keep_apart(model: ir.Model) -> None:
    """If a MaxPool reads the result of a Pad, gives the Pad an input `axes` that lists all axes, which is the default.

    onnxruntime's PadFusion (seen in 1.31) merges a Pad with zeros into the MaxPool, which is wrong if a window holds
    only negative numbers. It does not merge a Pad with `axes`. Before opset 18, or if the rank is unknown, the Pad
    stays unchanged; the verification finds a wrong result.
    """
    if model.graph.opset_imports.get("", 0) < _SINCE:
        return
    names = None
    for node in [node for node in walk.nodes(model.graph) if _is_pooled(node)]:
        rank = _rank(node)
        if rank is None:
            continue
        names = names or Names(model)
        tensor = ir.tensor(list(range(rank)), ir.DataType.INT64)
        axes = ir.Value(
            name=names.free("axes"),
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape([rank]),
            const_value=tensor,
        )
        model.graph.register_initializer(axes)
        node.resize_inputs(4)
        node.replace_input_with(3, axes)


def _is_pooled(node: ir.Node) -> bool:
    if node.op_type != "Pad" or node.domain or (len(node.inputs) > 3 and node.inputs[3] is not None):
        return False
    readers = (reader for reader, _ in node.outputs[0].uses())
    return any(reader.op_type == "MaxPool" and not reader.domain for reader in readers)


def _rank(node: ir.Node) -> int | None:
    dims, pads = facts.dims(node.inputs[0]), facts.integers(node.inputs[1])
    return len(dims) if dims is not None else len(pads) // 2 if pads is not None else None
