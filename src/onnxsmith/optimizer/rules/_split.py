"""Reads and writes `Split` in the form of each opset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer


def split(
    tape: ir.tape.Tape, value: ir.Value | None, axis: int, sizes: Sequence[int], opset: int
) -> Sequence[ir.Value]:
    """Writes a Split of `value` into parts of these sizes along the axis; returns the parts."""
    inputs, attributes = [value], {"axis": axis}
    if opset >= 13:
        inputs.append(tape.initializer(ir.Tensor(np.array(sizes, np.int64)), name="sizes"))
        return tape.op_multi_out("Split", inputs, attributes, num_outputs=len(sizes))
    return tape.op_multi_out("Split", inputs, {**attributes, "split": list(sizes)}, num_outputs=len(sizes))


def parts(node: ir.Node) -> tuple[int, list[int]] | None:
    """Returns the axis of a Split, counted from the front, and the sizes of its parts; None if they are unknown."""
    dims, axis = facts.dims(node.inputs[0]), integer(node, "axis", 0)
    if dims is None or axis is None or not -len(dims) <= axis < len(dims):
        return None
    axis %= len(dims)
    count, given = len(node.outputs), node.attributes.get("split")
    if given is not None:
        return None if given.is_ref() else (axis, [int(size) for size in given.as_ints()])
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        array = facts.constant(node.inputs[1])
        return None if array is None else (axis, [int(size) for size in array.ravel()])
    whole = dims[axis]
    if not isinstance(whole, int) or whole < count:
        return None
    size = -(-whole // count)
    sizes = [*[size] * (count - 1), whole - size * (count - 1)]
    return (axis, sizes) if sizes[-1] > 0 else None
