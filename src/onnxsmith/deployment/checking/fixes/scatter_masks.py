"""Writes a scatter with a reduction as a reduction over masks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._node_replacement import rewritten, sizes
from onnxsmith.deployment.checking.fixes._shaped_copy import Places
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import Inserter

_MOST = 2**22
"""Largest number of elements of a mask. A choice: 16 MB in float32."""
_REDUCTIONS = {"add": ("ReduceSum", "Add"), "mul": ("ReduceProd", "Mul"), "max": ("ReduceMax", "Max"),
               "min": ("ReduceMin", "Min")}  # fmt: skip


class ScatterMasks(Fix):
    """Few compilers support ScatterElements and ScatterND with a reduction, where several updates may meet at one
    place. The mask says for each place and each update whether the update's index is that place; the updates are then
    reduced under the mask.

    Refused:
    1. There is no reduction: the specification does not say which of two updates stays.
    2. Sizes are symbolic, or the mask has more than 4 million elements.
    3. The values are not float32, or ScatterND has indices of several axes.
    """

    rank = 19

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "ScatterElements", _elements)
        rewritten(places, "ScatterND", _rows)
        if places.changed:
            yield "scatters with a reduction are reductions over masks", places.model


def _elements(node: ir.Node, write: Inserter) -> ir.Value | None:
    data, indices, updates = node.inputs
    shape, chosen = sizes(data), sizes(indices)
    if data is None or indices is None or updates is None or shape is None or chosen is None:
        return None
    axis = node.attributes.get_int("axis", 0) % len(shape)
    if [size for at, size in enumerate(shape) if at != axis] != [size for at, size in enumerate(chosen) if at != axis]:
        return None
    return _reduced(node, write, shape, (indices, updates), axis, chosen[axis])


def _rows(node: ir.Node, write: Inserter) -> ir.Value | None:
    data, indices, updates = node.inputs
    shape, chosen = sizes(data), sizes(indices)
    if data is None or updates is None or shape is None or chosen is None or chosen[-1] != 1:
        return None
    count = math.prod(chosen[:-1])
    rows = write.op("Reshape", indices, write.constant([count, *[1] * (len(shape) - 1)]))
    values = write.op("Reshape", updates, write.constant([count, *shape[1:]]))
    return _reduced(node, write, shape, (rows, values), 0, count)


def _reduced(
    node: ir.Node, write: Inserter, shape: list[int], given: tuple[ir.Value, ir.Value], axis: int, count: int
) -> ir.Value | None:
    found = node.attributes.get("reduction")
    kind = found.as_string() if found is not None else "none"
    data = node.inputs[0]
    size = shape[axis]
    if kind not in _REDUCTIONS or data is None or data.dtype != ir.DataType.FLOAT:
        return None
    if math.prod(shape) * count > _MOST or math.prod(shape) * count == 0:
        return None
    reduce, combine = _REDUCTIONS[kind]
    indices = write.op("Cast", given[0], to=int(ir.DataType.INT64))
    negative = write.op("Less", indices, write.constant(0))
    indices = write.op("Where", negative, write.op("Add", indices, write.constant(size)), indices)
    places = np.arange(size).reshape([size, *[1] * (len(shape) - axis)])
    mask = write.op("Equal", write.op("Unsqueeze", indices, write.constant([axis])), write.constant(places))
    neutral = {"add": 0.0, "mul": 1.0, "max": float(np.finfo(np.float32).min), "min": float(np.finfo(np.float32).max)}
    values = write.op("Unsqueeze", given[1], write.constant([axis]))
    kept = write.op("Where", mask, values, write.constant(neutral[kind], np.float32))
    if reduce == "ReduceSum" or write.opset >= 18:
        over = write.op(reduce, kept, write.constant([axis + 1]), keepdims=0)
    else:
        over = write.op(reduce, kept, axes=[axis + 1], keepdims=0)
    return write.op(combine, data, over)
