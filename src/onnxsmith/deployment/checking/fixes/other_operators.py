"""Defines fixes that write an operator with other operators."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix, Places, constant, rewritten, sizes
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.expansion import expand
from onnxsmith.graph.surgery.node_insertion import Inserter


class ExpandOperators(Fix):
    """Replaces refused operators by the bodies that the ONNX specification gives them.

    Operators such as LayerNormalization, Gelu or CenterCropPad are written with other operators.
    """

    rank = 20

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        version = opset_conversion.of(model)
        made = inferred(model)[0]
        names = Names(made)
        done: set[str] = set()
        for node in list(walk.nodes(made.graph)):
            if node.domain in ("", "ai.onnx") and node.op_type in refused and node.graph is not None:
                write = Inserter(node, "written_out_", version, names.free)
                found = expand(node, version, version, write)
                if isinstance(found, str) or found[1] > version:
                    continue
                new = found[0]
                provenance.inherit(new, [node])
                for one in new:
                    one.name = names.free(f"{node.name}_{one.op_type}") if node.name else None
                done.add(node.op_type)
        if done:
            yield f"{', '.join(sorted(done))} written out with the operators of the specification", made


class EqualBools(Fix):
    """Compares bools by Xor.

    Some targets compare only numbers. Two bools are equal unless exactly one of them is true: Not(Xor).

    Refused:
    1. The values are not bools.
    """

    rank = 7

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Equal", _same)
        if places.changed:
            yield "bools compared by Xor", places.model


def _same(node: ir.Node, write: Inserter) -> ir.Value | None:
    if any(value is None or value.dtype != ir.DataType.BOOL for value in node.inputs):
        return None
    return write.op("Not", write.op("Xor", *node.inputs))


_MOST_ROWS = 4
"""Limits the rows of a matrix. A choice: the expansion of 4 rows has 40 products, the expansion of 5 rows has 205."""


class SmallDeterminants(Fix):
    """Writes determinants of small matrices as sums of products.

    Few compilers have Det. A determinant of up to 4 rows is written out along its first row (Laplace).

    Refused:
    1. The matrices have more than 4 rows, or a symbolic number of them.
    """

    rank = 18

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Det", _written_out)
        if places.changed:
            yield "determinants are written out", places.model


def _written_out(node: ir.Node, write: Inserter) -> ir.Value | None:
    x = node.inputs[0]
    size = x.shape[-1] if x is not None and x.shape is not None and len(x.shape) > 1 else None
    if x is None or x.shape is None or not isinstance(size, int) or not 0 < size <= _MOST_ROWS:
        return None
    rank = len(x.shape)
    rows = [write.op("Gather", x, write.constant(at), axis=rank - 2) for at in range(size)]
    elements = [[write.op("Gather", row, write.constant(at), axis=rank - 2) for at in range(size)] for row in rows]
    return _determinant(elements, list(range(size)), write)


def _determinant(rows: Sequence[Sequence[ir.Value]], columns: list[int], write: Inserter) -> ir.Value:
    first = rows[0]
    if len(columns) == 1:
        return first[columns[0]]
    total: ir.Value | None = None
    for place, column in enumerate(columns):
        minor = _determinant(rows[1:], [one for one in columns if one != column], write)
        term = write.op("Mul", first[column], minor)
        total = term if total is None else write.op("Sub" if place % 2 else "Add", total, term)
    assert total is not None
    return total


_MOST = 2**22
"""Limits the elements of a mask. A choice: 16 MB in float32."""
_REDUCTIONS = {"add": ("ReduceSum", "Add"), "mul": ("ReduceProd", "Mul"), "max": ("ReduceMax", "Max"),
               "min": ("ReduceMin", "Min")}  # fmt: skip


class ScatterMasks(Fix):
    """Writes a scatter with a reduction as a reduction over masks.

    Few compilers support ScatterElements and ScatterND with a reduction, where several updates may meet at one place.
    The mask says for each place and each update whether the update's index is this place. The updates are then reduced
    under the mask.

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
            yield "scatters with a reduction replaced by reductions over masks", places.model


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


class Col2imConvolution(Fix):
    """Writes Col2Im as a transposed convolution.

    Col2Im adds blocks where they overlap. A transposed convolution also does this, if its kernel puts each element of a
    block in its place, with one group for each channel.

    Refused:
    1. The shapes of the image or of the block are computed, or the sizes of the input are symbolic.
    2. The values are not float32.
    """

    rank = 13

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Col2Im", _convolution)
        if places.changed:
            yield "Col2Im replaced by a transposed convolution", places.model


def _convolution(node: ir.Node, write: Inserter) -> ir.Value | None:
    columns, image, block = node.inputs[0], constant(node.inputs[1]), constant(node.inputs[2])
    shape = sizes(columns)
    if columns is None or columns.dtype != ir.DataType.FLOAT or image is None or block is None or shape is None:
        return None
    rank, area = len(image), int(math.prod(block))
    strides = _numbers(node, "strides", [1] * rank)
    dilations = _numbers(node, "dilations", [1] * rank)
    pads = _numbers(node, "pads", [0] * 2 * rank)
    channels = shape[1] // area
    reach = [int(dilations[at] * (block[at] - 1) + 1) for at in range(rank)]
    counts = [(int(image[at]) + pads[at] + pads[at + rank] - reach[at]) // strides[at] + 1 for at in range(rank)]
    if math.prod(counts) != shape[2]:
        return None
    rest = [
        int(image[at]) + pads[at] + pads[at + rank] - ((counts[at] - 1) * strides[at] + reach[at]) for at in range(rank)
    ]
    kernel = np.eye(area, dtype=np.float32).reshape(area, 1, *(int(size) for size in block))
    spread = write.op("Reshape", columns, write.constant([shape[0], shape[1], *counts]))
    weight = write.constant(np.tile(kernel, (channels, *[1] * (rank + 1))), np.float32)
    return write.op(
        "ConvTranspose", spread, weight, group=channels, strides=strides, dilations=dilations, pads=pads,
        output_padding=rest,
    )  # fmt: skip


def _numbers(node: ir.Node, name: str, usual: list[int]) -> list[int]:
    found = node.attributes.get(name)
    return list(found.as_ints()) if found is not None else usual
