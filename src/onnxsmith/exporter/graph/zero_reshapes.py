"""Writes Reshapes without `allowzero`, which opsets before 14 do not have."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.words import several
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk

SINCE = 14
"""The opset in which `allowzero` appeared (ONNX operator changelog)."""


def without_allowzero(model: ir.Model) -> tuple[str, ...]:
    """Removes `allowzero` from Reshapes whose computed shape has a 0 only if an input is empty. Without it, a 0 stands
    for the size of the data at the same place, which is the same number where the shape repeats that size. Elsewhere a
    runtime refuses the empty input: returns a note on these. A Reshape to a constant 0 stays as it is."""
    reshapes = [node for node in walk.all_nodes(model) if node.op_type == "Reshape" and not node.domain]
    asked = [node for node in reshapes if node.attributes.get_int("allowzero", 0)]
    if not asked:
        return ()
    shaped = {node.outputs[0].name: node for node in walk.all_nodes(inferred(model)[0]) if node.op_type == "Reshape"}
    lost = 0
    for node in asked:
        known = shaped.get(node.outputs[0].name, node)
        target, data = known.inputs[1], facts.dims(known.inputs[0])
        sizes = facts.integers(target)
        constant = facts.constant(target)
        if constant is not None and 0 in constant:
            continue
        del node.attributes["allowzero"]
        if constant is not None:
            continue
        repeats = sizes is not None and all(
            (isinstance(size, int) and size) or (data is not None and place < len(data) and size == data[place])
            for place, size in enumerate(sizes)
        )
        lost += not repeats
    if not lost:
        return ()
    return (
        f"{several(lost, 'Reshape')} cannot produce an axis of size 0 before opset {SINCE}, so such inputs are refused",
    )
