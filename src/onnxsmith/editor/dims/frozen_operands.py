"""Replaces the operands and attributes by which a node fixes sizes. Each operator has a rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.editor.dims import factors
from onnxsmith.editor.dims.factors import Atom, Dim
from onnxsmith.editor.dims.runtime_sizes import Piece
from onnxsmith.graph.shapes.dims import names_in
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import opset_conversion

if TYPE_CHECKING:
    from onnxsmith.editor.dims.dimension_propagation import Opening

_END = np.iinfo(np.int64).max
_NEGATIVE = 11
"""The first opset in which indices may be negative."""
_ALLOWZERO = 14
"""The first opset in which a Reshape may take a 0 in its shape as a size of 0."""


def opened(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Replaces operands that fix a size in a node. If the operator's rule finds the dimensions of the first result,
    returns them.

    Raises:
        OnnxsmithError: `edit/frozen-dim` if a size cannot be made symbolic.
    """
    rule = _RULES.get(node.op_type)
    return rule(opening, node) if rule is not None else None


def count_rows(opening: Opening, node: ir.Node) -> None:
    """Makes constant row numbers, 0 to N - 1, in the indices of GatherND and ScatterND follow the number of rows.

    Raises:
        OnnxsmithError: `edit/frozen-dim` if the constant selects other rows.
    """
    if node.op_type not in ("GatherND", "ScatterND"):
        return
    dims, index = opening.dims(node.inputs[0]), node.inputs[1]
    parts = _static(opening, index) if index is not None else None
    if dims is None or index is None or not parts or opening.is_reached(index) or opening.is_of_data(index):
        return
    batch = node.attributes.get_int("batch_dims", 0)
    for part in range(parts[-1]):
        if factors.is_open(dims[batch + part]):
            opening.repeating.count(node, 1, part, dims[batch + part])


def _scatter(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Repeats the constant data of a ScatterND along its first axis, if the indices have the symbol there, too:
    exporters write into zeros row by row. The comparison of rows judges it."""
    data, rows = opening.dims(node.inputs[0]), opening.dims(node.inputs[1])
    if data is None or not rows or not data or opening.is_reached(node.inputs[0]):
        return None
    if factors.is_open(rows[0]) and factors.size(rows[0]) == factors.size(data[0]):
        opening.repeating.repeat(node, 0, 0, rows[0], broadcast=False)
    return None


def _reshape(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Puts -1 at the symbol's place in the target shape, or computes the shape. An existing -1 elsewhere becomes its
    static size, because -1 has no meaning in a tensor without elements."""
    dims, sizes = opening.dims(node.inputs[0]), _static(opening, node.outputs[0])
    if dims is None or sizes is None:
        return None
    dims = _turned(opening, node, dims, sizes)
    wanted = factors.redistributed(dims, sizes, late=opening.choice.late)
    opening.doubts.late |= wanted != factors.redistributed(dims, sizes, late=not opening.choice.late)
    if wanted is None and any(factors.is_symbolic(dim) and not factors.is_open(dim) for dim in dims):
        return None  # the shape may be computed from that symbol, in a way that has no factors
    if wanted is None:
        shapes = f"{[factors.text(dim) for dim in dims]} cannot be divided into {sizes}"
        raise opening.refuse(node, f"it is unclear which new axis gets the symbol: {shapes}")
    places = [axis for axis, dim in enumerate(wanted) if factors.is_symbolic(dim)]
    if not any(factors.is_open(dim) for dim in wanted):
        return None
    for part in (one for dim in wanted for one in dim if isinstance(one, Atom) and one.base is not None):
        if not any(part in dim for dim in dims):
            said = f"{walk.node_label(node)} divides this dimension into parts of {part.over}"
            for name in names_in(part.text):
                opening.kept.setdefault(name, []).append(said)
    numbers = [-1 if factors.is_symbolic(dim) else factors.size(dim) for dim in wanted]
    target, held = node.inputs[1], opening.integers(node.inputs[1])
    if len(places) == 1 and 0 not in numbers:
        if _constant(target) == numbers:
            return wanted
        if not _says(held, wanted):
            _replace(opening, node, 1, opening.sizes.constant(numbers), f"{_told(wanted, was=True)} → {numbers}")
    elif not _says(held, wanted):
        said = f"{_told(wanted, was=True)} → {_told(wanted)}"
        _replace(opening, node, 1, opening.sizes.shape([_piece(dim) for dim in wanted], node), said)
        if opset_conversion.of(opening.work.model) >= _ALLOWZERO:
            node.attributes.add(ir.AttrInt64("allowzero", 1))
    return wanted


def _turned(opening: Opening, node: ir.Node, dims: list[Dim], sizes: Sequence[int]) -> list[Dim]:
    """Moves a batch of size 1 to the front by a Transpose, if that is the choice, and if the target has a 1 in front.
    Returns the dimensions of the operand."""
    at = next((axis for axis, dim in enumerate(dims) if factors.size(dim) == 1 and _is_batch(dim)), 0)
    before = math.prod(factors.size(dim) for dim in dims[:at])
    data = node.inputs[0]
    if before <= 1 or not sizes or sizes[0] != 1 or data is None:
        return dims
    opening.doubts.turned = True
    if not opening.choice.turned:
        return dims
    order = [at, *(axis for axis in range(len(dims)) if axis != at)]
    node.replace_input_with(0, opening.sizes.node(node, "Transpose", [data], perm=order))
    opening.notes.append(f"{walk.node_label(node)}: a Transpose moves {factors.text(dims[at])} to the front")
    return [dims[axis] for axis in order]


def _is_batch(dim: Dim) -> bool:
    """Whether a dimension is the opened first axis of an input."""
    return any(
        isinstance(one, Atom) and not one.was_open and one.axis == 0 and one.value.is_graph_input() for one in dim
    )


def _told(dims: Sequence[Dim], *, was: bool = False) -> str:
    """Writes a shape; if `was` is set, as it was before: with the size of each dimension that was not symbolic."""
    texts = [
        factors.text(dim) if factors.is_symbolic(dim) and not (was and factors.is_open(dim)) else str(factors.size(dim))
        for dim in dims
    ]
    return f"[{', '.join(texts)}]"


def _flatten(opening: Opening, node: ir.Node) -> list[Dim] | None:
    dims = opening.dims(node.inputs[0])
    if dims is None:
        return None
    axis = node.attributes.get_int("axis", 1)
    axis += len(dims) if axis < 0 else 0
    return [_product(dims[:axis]), _product(dims[axis:])]


def _product(dims: Sequence[Dim]) -> Dim:
    return tuple(factor for dim in dims for factor in dim if factor != 1) or (1,)


def _expand(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Puts 1 in the target shape where the data has the symbol, because Expand then keeps the data's size."""
    dims, target = opening.dims(node.inputs[0]), opening.integers(node.inputs[1])
    if dims is None or target is None:
        return None
    for back in range(1, min(len(dims), len(target)) + 1):
        asked = target[-back]
        wanted = opening.named(asked) if isinstance(asked, str) else None
        frozen = factors.size(dims[-back]) if not factors.is_open(dims[-back]) else 1
        if wanted is not None and frozen == factors.size(wanted) != 1:
            opening.repeating.repeat(node, 0, len(dims) - back, wanted, broadcast=True)
    new: list[int | str | None] = list(target)
    for back in range(1, min(len(dims), len(new)) + 1):
        if factors.is_open(dims[-back]) and new[-back] == factors.size(dims[-back]):
            new[-back] = 1
    if new == target:
        return None
    pieces = [opening.named(one) if one is not None else None for one in new]
    if any(piece is None for piece in pieces):
        raise opening.refuse(
            node, "a size of the node's target shape is computed in a way that onnxsmith cannot follow"
        )
    made = opening.sizes.shape([_piece(piece) for piece in pieces if piece is not None], node)
    _replace(opening, node, 1, made, f"{target} → {new}")
    return None


def _resize(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Computes the target sizes: a symbolic size is multiplied by the original's ratio of target size to input size."""
    dims, after = opening.dims(node.inputs[0]), _static(opening, node.outputs[0])
    held = opening.integers(node.inputs[3]) if len(node.inputs) > 3 else None
    if dims is None or after is None or held is None or not all(isinstance(one, int) for one in held):
        return None
    axes = [axis % len(dims) for axis in node.attributes.get_ints("axes", ())] or list(range(len(dims)))
    if not any(factors.is_open(dims[axis]) for axis in axes):
        return None
    pieces: list[Piece] = [
        (dims[axis], after[axis], factors.size(dims[axis])) if factors.is_open(dims[axis]) else after[axis]
        for axis in axes
    ]
    _replace(opening, node, 3, opening.sizes.shape(pieces, node), f"the sizes {after} now follow the input")
    return None


def _slice(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Lets a slice that ends at the frozen size end at the end of the axis instead, at any size."""
    dims = opening.dims(node.inputs[0])
    if len(node.inputs) < 3 or dims is None:
        return None
    starts, ends = _constant(node.inputs[1]), _constant(node.inputs[2])
    axes = _constant(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    steps = _constant(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else None
    if starts is None or ends is None:
        return None
    axes = axes or list(range(len(starts)))
    new_starts: list[Piece] = list(starts)
    new_ends: list[Piece] = list(ends)
    for index, axis in enumerate(axes):
        dim, step = dims[axis], steps[index] if steps else 1
        if not factors.is_open(dim) or step < 0:
            continue
        size = factors.size(dim)
        start, end = starts[index], ends[index]
        if end >= size and (end == size or start <= 0):
            new_ends[index] = _END
            if start == size - 1 > 0 and step == 1:
                new_starts[index] = -1  # the last
        # A slice of whole blocks of the symbol is scaled with it.
        block = _block(dim)
        if block > 1 and step == 1 and start >= 0 and 0 < end <= size and not (start % block or end % block):
            new_starts[index] = (_atoms(dim), start // block, 1) if start else 0
            new_ends[index] = (_atoms(dim), end // block, 1) if end < size else _END
    if new_starts != starts:
        _replace(opening, node, 1, opening.sizes.shape(new_starts, node), "the start now follows the size")
    if new_ends != ends:
        # The end of an int32 slice has to fit int32; sizes are computed as int64, and both operands have one dtype.
        _replace(opening, node, 2, opening.sizes.shape(new_ends, node), f"the end {ends} now follows the size")
        _as_int64(opening, node)
    return None


def _as_int64(opening: Opening, node: ir.Node) -> None:
    for index in (1, 2, 3, 4):
        value = node.inputs[index] if index < len(node.inputs) else None
        held = _constant(value)
        if value is not None and held is not None and value.dtype is not ir.DataType.INT64:
            node.replace_input_with(index, opening.sizes.constant(held))


def _block(dim: Dim) -> int:
    """Returns the symbol's size if the dimension consists of blocks. For example, `(4, batch)` is four blocks of
    `batch`. Returns 0 for other dimensions."""
    last = dim[-1]
    return last.size if len(dim) > 1 and isinstance(dim[0], int) and not isinstance(last, int) else 0


def _atoms(dim: Dim) -> Dim:
    return tuple(factor for factor in dim if not isinstance(factor, int))


def _split(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Computes the parts of a split along the symbol, if they are multiples of its size."""
    dims = opening.dims(node.inputs[0])
    parts = _constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if dims is None:
        return None
    dim = dims[node.attributes.get_int("axis", 0)]
    if not factors.is_open(dim) or (parts is None and "split" not in node.attributes):
        return None
    atoms = _atoms(dim)
    if parts is None or any(part % factors.size(atoms) for part in parts):
        raise opening.refuse(node, f"the node splits the axis into parts of fixed sizes: {parts or 'an attribute'}")
    # Single elements of a size-1 symbol: the graph may need one part for each row.
    if factors.size(atoms) == 1 and len(parts) == factors.size(dim) > 1 and not isinstance(dim[0], int):
        raise opening.refuse(node, f"the node splits the axis into {len(parts)} parts, a fixed number")
    made = opening.sizes.shape([(atoms, part // factors.size(atoms), 1) for part in parts], node)
    _replace(opening, node, 1, made, f"the parts {parts} now follow the size")
    return None


def _squeeze(opening: Opening, node: ir.Node) -> list[Dim] | None:
    dims, after = opening.dims(node.inputs[0]), _static(opening, node.outputs[0])
    if dims is None or after is None:
        return None
    given = _constant(node.inputs[1]) if len(node.inputs) > 1 else list(node.attributes.get_ints("axes", ())) or None
    if len(node.inputs) > 1 and node.inputs[1] is not None and given is None:
        return None
    axes = given if given is not None else [axis for axis, dim in enumerate(dims) if factors.size(dim) == 1]
    for axis in axes:
        if factors.is_open(dims[axis]):
            raise opening.refuse(node, f"the node removes axis {axis}, whose dimension is {factors.text(dims[axis])}")
    return None


def _divided(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Computes the number by which a sum over the symbol is divided for its mean. Other constants that may hold the
    symbol's size stay, and are noted."""
    for index, value in enumerate(node.inputs):
        tensor = None if value is None or value.is_graph_input() else const_tensor(value)
        if value is None or tensor is None or tensor.size > _FEW or opening.is_reached(value):
            continue
        other = next((one for at, one in enumerate(node.inputs) if at != index), None)
        numbers = np.asarray(tensor.numpy(), np.float64).ravel()
        summed = _summed(opening, other) if index == 1 and node.op_type == "Div" and numbers.size == 1 else None
        if summed is not None and numbers[0] == factors.size(summed):
            _replace(
                opening,
                node,
                1,
                _as_number(opening, node, summed, value),
                f"{factors.size(summed)} → the number of summed elements",
            )
            continue
        for one in opening.atoms() if opening.is_reached(other) else ():
            if one.size > _SMALL and bool(((numbers == one.size) | (np.abs(numbers * one.size - 1) < _CLOSE)).any()):
                said = (
                    f"{walk.node_label(node)} keeps {value.name}, in which the number {one.size} may be the size of "
                    f"{one.text}"
                )
                opening.kept.setdefault(one.text, []).append(said)
    return None


_FEW, _SMALL, _CLOSE = 16, 2, 1e-6
"""Limits the elements of a constant that may hold a size, the smallest size that is looked for, and the difference from
its inverse. A choice."""


def _summed(opening: Opening, value: ir.Value | None) -> Dim | None:
    """Returns the number of elements that each element of a value is the sum of, if the symbol is one of them."""
    maker = value.producer() if value is not None else None
    while maker is not None and maker.op_type in ("Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity"):
        maker = maker.inputs[0].producer() if maker.inputs[0] is not None else None
    if maker is None or maker.domain or maker.op_type != "ReduceSum":
        return None
    dims = opening.dims(maker.inputs[0])
    given = _constant(maker.inputs[1]) if len(maker.inputs) > 1 and maker.inputs[1] is not None else None
    axes = given if given is not None else list(maker.attributes.get_ints("axes", ()))
    if dims is None or not axes:
        return None
    found = _product([dims[axis] for axis in axes])
    return found if factors.is_open(found) else None


def _as_number(opening: Opening, node: ir.Node, dim: Dim, like: ir.Value) -> ir.Value:
    """Returns a size as a number of the dtype and the rank of a constant."""
    make = opening.sizes
    sizes = make.shape([(dim, 1, 1)], node)
    tensor = const_tensor(like)
    assert tensor is not None
    target = make.constant([1] * len(tensor.shape)) if len(tensor.shape) else make.constant(np.zeros(0, np.int64))
    shaped = make.node(node, "Reshape", [sizes, target])
    return make.node(node, "Cast", [shaped], to=int(tensor.dtype))


def _gather(opening: Opening, node: ir.Node) -> list[Dim] | None:
    """Lets constant indices of every row follow the number of rows: 0 to N - 1, or places in rows that lie one behind
    another. Other indices of an axis with a single element are refused, because their meaning at other sizes is
    unknown."""
    dims, index = opening.dims(node.inputs[0]), node.inputs[1]
    axis = node.attributes.get_int("axis", 0)
    if dims is None or index is None or not factors.is_open(dims[axis]):
        return None
    if (opening.is_reached(index) and not opening.is_sized(index)) or _is_open(opening, index):
        return None
    if opening.repeating.place(node, 1, dims[axis]):
        return None
    last = factors.size(dims[axis]) - 1
    held = _constant(index)
    if held == [last] and last > 0 and opset_conversion.of(opening.work.model) >= _NEGATIVE and index.dtype is not None:
        array = np.full(const_tensor(index).shape.numpy(), -1, index.dtype.numpy())  # type: ignore[union-attr]
        _replace(opening, node, 1, opening.sizes.constant(array), f"index {last} (the last) → -1")
        return None
    if factors.size(dims[axis]) == 1:
        raise opening.refuse(
            node, f"the node selects elements of axis {axis}, whose dimension is {factors.text(dims[axis])}"
        )
    return None


def _is_open(opening: Opening, value: ir.Value) -> bool:
    dims = opening.dims(value)
    return dims is not None and any(factors.is_open(dim) for dim in dims)


def _static(opening: Opening, value: ir.Value) -> list[int] | None:
    sizes = opening.static.get(value)
    return None if sizes is None or None in sizes else [size for size in sizes if size is not None]


def _constant(value: ir.Value | None) -> list[int] | None:
    """Returns the elements of a constant of integers; None for any other value."""
    tensor = const_tensor(value) if value is not None and not value.is_graph_input() else None
    return None if tensor is None else [int(one) for one in np.atleast_1d(tensor.numpy()).ravel()]


def _says(held: Sequence[int | str | None] | None, wanted: Sequence[Dim]) -> bool:
    """Whether a computed shape already has the wanted sizes."""
    if held is None or len(held) != len(wanted) or not any(isinstance(one, str) for one in held):
        return False
    texts = [canonical(factors.text(dim)) if factors.is_symbolic(dim) else factors.size(dim) for dim in wanted]
    unlike = [one for one, text in zip(held, texts, strict=True) if one != text]
    return not unlike or unlike == [-1]


def _piece(dim: Dim) -> Piece:
    return (dim, 1, 1) if factors.is_symbolic(dim) else factors.size(dim)


def _replace(opening: Opening, node: ir.Node, index: int, value: ir.Value, said: str) -> None:
    node.replace_input_with(index, value)
    opening.notes.append(f"{walk.node_label(node)}: {said}")


_RULES: dict[str, Callable[[Opening, ir.Node], list[Dim] | None]] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Expand": _expand,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "ScatterND": _scatter,
    "Div": _divided,
    "Mul": _divided,
    "Sub": _divided,
    "Add": _divided,
    "Min": _divided,
    "Max": _divided,
}
