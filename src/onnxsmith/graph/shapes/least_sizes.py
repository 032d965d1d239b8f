"""Finds dimensions that must be above 0, because the model fails otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.shapes import known_integers
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.symbols import Element


def not_empty(node: ir.Node) -> Iterator[Element]:
    """Yields dimensions that are above 0 whenever the node does not fail.

    A Conv's window must fit, so its spatial results are not empty. A Reshape cannot compute its -1 beside an empty
    dimension: with `allowzero` the specification forbids this, though onnxruntime makes the dimension 1.
    """
    if node.op_type not in ("Conv", "Reshape"):
        return
    value = node.outputs[0] if node.outputs else None
    if value is None or value.shape is None:
        return
    dims = written(value.shape)
    if node.op_type == "Conv":
        yield from (dim for dim in dims[2:] if isinstance(dim, str))
    target = known_integers.elements(node.inputs[1]) if node.op_type == "Reshape" and len(node.inputs) > 1 else None
    if target is not None and -1 in target and len(target) == len(dims):
        pairs = zip(dims, target, strict=True)
        yield from (dim for dim, element in pairs if isinstance(dim, str) and element != -1)
