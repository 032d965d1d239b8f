"""Reads and writes reductions: their axes, and whether they keep the axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer

REDUCING = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)


@dataclass(frozen=True)
class Reduction:
    """The axes of a reduction, from 0 on and in order, and whether they stay with a size of 1."""

    axes: tuple[int, ...]
    kept: bool


def reduction(node: ir.Node) -> Reduction | None:
    """Returns the reduction of a node of `REDUCING`; None if it is unknown, or reduces nothing."""
    dims = facts.dims(node.inputs[0])
    kept, attribute = integer(node, "keepdims", 1), node.attributes.get("axes")
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if dims is None or kept is None or (attribute is not None and attribute.is_ref()):
        return None
    if attribute is not None:
        axes = list(attribute.as_ints())
    elif given is not None:
        array = facts.constant(given)
        if array is None:
            return None
        axes = [int(axis) for axis in array.ravel()]
    else:
        axes = []
    if not axes and integer(node, "noop_with_empty_axes", 0) != 0:
        return None
    places = sorted({axis % len(dims) for axis in axes}) if dims and axes else list(range(len(dims)))
    return Reduction(tuple(places), bool(kept))


def takes_axes_as_input(op_type: str, opset: int) -> bool:
    """Whether a reduction's axes are an input in this opset, not an attribute."""
    return opset >= (13 if op_type == "ReduceSum" else 18)


def write(tape: ir.tape.Tape, op_type: str, source: ir.Value | None, found: Reduction, opset: int) -> ir.Value:
    """Writes a reduction."""
    attributes: dict[str, int | list[int]] = {} if found.kept else {"keepdims": 0}
    if not takes_axes_as_input(op_type, opset):
        return tape.op(op_type, [source], {"axes": list(found.axes), **attributes})
    axes = tape.initializer(ir.Tensor(np.array(found.axes, np.int64)), name="axes")
    return tape.op(op_type, [source, axes], attributes)
