"""Repeats constants along a symbolic dimension: states of zeros, class tokens, masks, position numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.editor.dims import factors
from onnxsmith.editor.dims.equal_axes import BROADCASTING
from onnxsmith.editor.dims.factors import Atom, Dim
from onnxsmith.editor.edited_model import depending
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.verification.run import run

if TYPE_CHECKING:
    from onnxsmith.editor.dims.dimension_propagation import Opening


_ELEMENTWISE = {
    "Abs",
    "Cast",
    "Identity",
    "Neg",
    "Not",
    "Sqrt",
    "Exp",
    "Log",
    "Sign",
    "Floor",
    "Ceil",
    "Relu",
    "Sigmoid",
}
"""Lists operators of one operand whose result has its shape, as masks are made of."""


_INDEXING = {"Gather", "GatherND", "ScatterND"}
_LEADING = {"Add", "Cast", "Concat", "Expand", "Flatten", "Mul", "Reshape", "Squeeze", "Unsqueeze", "Where"}
"""Operators through which row numbers go to the indices of `_INDEXING`."""


class Repeating:
    """Extends operands that do not depend on the input along a symbolic dimension."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def repeat(self, node: ir.Node, index: int, axis: int, dim: Dim, *, broadcast: bool) -> None:
        """Replaces an operand by a tensor whose `axis` has the size `dim`, or, with `broadcast`, the size 1.

        Raises:
            OnnxsmithError: `edit/frozen-dim` if the elements along the axis are not equal, or not evenly spaced.
        """
        opening, value = self._opening, node.inputs[index]
        assert value is not None
        # It depends on the opened input, yet keeps its size: nothing computes the elements it would need.
        if opening.is_reached(value):
            if self._traced(value, axis, dim):
                opening.notes.append(
                    f"{walk.node_label(node)}: {value.name} follows {factors.text(dim)} on axis {axis}"
                )
                return
            raise opening.refuse(node, f"axis {axis} of {value.name} keeps the size of {factors.text(dim)}")
        inputs = [one for one in opening.work.model.graph.inputs if value in depending(opening.work.model, {one})]
        if inputs and not opening.is_sized(value):
            if self._traced(value, axis, dim):
                opening.notes.append(
                    f"{walk.node_label(node)}: {value.name} follows {factors.text(dim)} on axis {axis}"
                )
                return
            raise self._comes_from(node, value, axis, dim, inputs[0])
        made = self._one(node, value, axis, dim)
        new = made if isinstance(made, ir.Value) else self._repeated(node, made, axis, dim, broadcast=broadcast)
        node.replace_input_with(index, new)
        opening.notes.append(f"{walk.node_label(node)}: {value.name} follows {factors.text(dim)} on axis {axis}")

    def _comes_from(self, node: ir.Node, value: ir.Value, axis: int, dim: Dim, source: ir.Value) -> OnnxsmithError:
        """Returns the error for an operand that another input makes with a fixed size."""
        why = (
            f"axis {axis} of {value.name} has the fixed size {factors.size(dim)}, which comes from the input "
            f"{source.name}"
        )
        axes = [at for at, size in enumerate(self._opening.static.get(source, ())) if size == factors.size(dim)]
        shape = self._opening.dims(source) or []
        axes = [at for at in axes if at < len(shape) and not factors.is_symbolic(shape[at]) and factors.size(dim) > 1]
        fix = f'make that axis of the input dynamic too: "{source.name}:{axes[0]}={factors.text(dim)}"' if axes else ""
        return self._opening.refuse(node, why, fix)

    def _traced(self, value: ir.Value, axis: int, dim: Dim) -> bool:
        """Lets the operands from which a value is made, element by element, follow the symbol. Returns whether they
        do."""
        opening, maker = self._opening, value.producer()
        if maker is None or maker.domain or maker.graph is not opening.work.model.graph:
            return False
        dims = opening.dims(value)
        if dims is None:
            return False
        if maker.op_type in BROADCASTING:
            for index, operand in enumerate(maker.inputs):
                known = opening.dims(operand)
                at = axis - len(dims) + len(known) if known is not None else -1
                if known is not None and at >= 0 and factors.size(known[at]) == factors.size(dim) != 1:
                    self.repeat(maker, index, at, dim, broadcast=True)
        elif maker.op_type == "Unsqueeze":
            added = opening.integers(maker.inputs[1]) if len(maker.inputs) > 1 else None
            axes = {int(one) % len(dims) for one in added or () if isinstance(one, int)}
            if added is None or axis in axes:
                return False
            self.repeat(maker, 0, axis - sum(one < axis for one in axes), dim, broadcast=False)
        elif maker.op_type == "Reshape":
            return self._reshaped(maker, value, axis, dim)
        elif maker.op_type in _ELEMENTWISE:
            self.repeat(maker, 0, axis, dim, broadcast=False)
        else:
            return False
        opening.again(maker)
        return any(map(factors.is_open, opening.dims(value) or ()))

    def _reshaped(self, maker: ir.Node, value: ir.Value, axis: int, dim: Dim) -> bool:
        """Puts -1 at the symbol's place in the constant shape of a Reshape whose operand has unknown sizes."""
        opening = self._opening
        held, dims = opening.integers(maker.inputs[1]), opening.dims(value)
        if opening.dims(maker.inputs[0]) is not None or dims is None or held is None or len(held) != len(dims):
            return False
        if not all(isinstance(one, int) and one > 0 for one in held) or held[axis] != factors.size(dim):
            return False
        numbers = [-1 if at == axis else int(one) for at, one in enumerate(held) if isinstance(one, int)]
        maker.replace_input_with(1, opening.sizes.constant(numbers))
        opening.notes.append(f"{walk.node_label(maker)}: {held} → {numbers}")
        opening.declare(value, [dim if at == axis else one for at, one in enumerate(dims)])
        return True

    def count(self, node: ir.Node, index: int, part: int, dim: Dim) -> None:
        """Replaces an operand that counts the indices of `dim`, so that it counts to any size.

        The operand holds 0 to N - 1 in one `part` of its last axis, where N is the size of `dim`.

        Raises:
            OnnxsmithError: `edit/frozen-dim` if the operand holds other numbers.
        """
        opening, value, size = self._opening, node.inputs[index], factors.size(dim)
        assert value is not None
        array = self._array(node, value)
        for axis in range(array.ndim - 1):
            if array.shape[axis] != size:
                continue
            first, step = array.take([0], axis), np.zeros([1] * (array.ndim - 1) + [array.shape[-1]], array.dtype)
            step[..., part] = 1
            if np.array_equal(first + step * self._along(array, axis), array) and not first[..., part].any():
                node.replace_input_with(index, self._grown(node, first, step, axis, dim))
                opening.notes.append(f"{walk.node_label(node)}: {value.name} now counts up to {factors.text(dim)}")
                return
        raise opening.refuse(node, f"{value.name} selects fixed indices along the dimension {factors.text(dim)}")

    def place(self, node: ir.Node, index: int, dim: Dim) -> bool:
        """Replaces indices that repeat from row to row of `dim` by indices for any number of rows. The rows lie one
        behind another, so the indices of each row are the indices of the previous row plus the block size. Returns
        whether the operand holds such indices."""
        value, block = node.inputs[index], factors.size(dim[1:])
        if not isinstance(dim[0], Atom) or factors.is_symbolic(dim[1:]) or value is None:
            return False
        array = self._array(node, value)
        step = np.full([1] * array.ndim, block, np.int64)
        for axis in range(array.ndim):
            first = array.take([0], axis).astype(np.int64) if array.shape[axis] == dim[0].size else None
            if first is None or first.min(initial=0) < 0 or first.max(initial=0) >= block:
                continue
            if np.array_equal(first + step * self._along(array, axis), array):
                node.replace_input_with(index, self._grown(node, first, step, axis, dim[:1]))
                self._opening.notes.append(f"{walk.node_label(node)}: {value.name} follows {factors.text(dim)}")
                return True
        return False

    def _one(self, node: ir.Node, value: ir.Value, axis: int, dim: Dim) -> ir.Value | np.ndarray | None:
        """Returns the part of a value that repeats along the symbol. If the values do not repeat but are evenly spaced,
        returns a value that continues the spacing. A value with a single index is returned expanded."""
        # There is no second element that could differ, so the value is expanded without reading it.
        if all(factor.size == 1 for factor in dim if isinstance(factor, Atom)):
            return self._single(node, value, axis, dim)
        array = self._array(node, value)
        if any(map(factors.is_symbolic, self._opening.dims(value) or ())) and len(dim) == 1:
            return self._along_another(node, value, array, axis, dim)
        split = [factor if isinstance(factor, int) else factor.size for factor in dim]
        parts = array.reshape(*array.shape[:axis], *split, *array.shape[axis + 1 :])
        for at, factor in enumerate(dim):
            if not isinstance(factor, Atom):
                continue
            first = parts.take([0], axis + at)
            if np.array_equal(np.broadcast_to(first, parts.shape), parts):
                parts = first
                continue
            return self._progression(node, value, array, axis, dim)
        return parts

    def _along_another(self, node: ir.Node, value: ir.Value, array: np.ndarray, axis: int, dim: Dim) -> ir.Value:
        """Expands a value that follows a symbol along another axis already."""
        if not np.array_equal(np.broadcast_to(array.take([0], axis), array.shape), array):
            why = f"{value.name} has another value at each index of axis {axis}, which holds {factors.text(dim)}"
            raise self._opening.refuse(node, why)
        make = self._opening.sizes
        first = make.node(node, "Slice", [value, *(make.constant([one]) for one in (0, 1, axis))])
        return self._expanded(node, first, list(array.shape), axis, dim)

    def _single(self, node: ir.Node, value: ir.Value, axis: int, dim: Dim) -> ir.Value:
        """Expands a value that has a single index along the symbol."""
        opening, shape = self._opening, self._opening.dims(value)
        assert shape is not None
        counted = self._counted(node, value, axis, dim)
        if counted is not None:
            return counted
        sizes = [factors.size(one) for one in shape]
        split = [1 if isinstance(factor, Atom) else factor for factor in dim]
        if len(split) > 1:
            target = [*sizes[:axis], *split, *sizes[axis + 1 :]]
            value = opening.sizes.node(node, "Reshape", [value, opening.sizes.constant(target)])
        return self._expanded(node, value, sizes, axis, dim)

    def number(self, node: ir.Node, index: int, axis: int, dim: Dim) -> None:
        """Replaces a constant 0 that is broadcast along the symbol by the number of each row, if that is the choice."""
        value = node.inputs[index]
        made = None if value is None or factors.size(dim) != 1 else self._counted(node, value, axis, dim)
        if value is not None and made is not None:
            node.replace_input_with(index, made)
            self._opening.notes.append(
                f"{walk.node_label(node)}: {value.name} now numbers the rows of {factors.text(dim)}"
            )

    def _counted(self, node: ir.Node, value: ir.Value, axis: int, dim: Dim) -> ir.Value | None:
        """Returns the numbers of the rows for a constant 0 that may be the number of the only row, if that is the
        choice."""
        block = self._block(node) if len(dim) == 1 and self._is_zero(value) else 0
        if not block:
            return None
        self._opening.doubts.counts = True
        if not self._opening.choice.counts:
            return None
        array = self._array(node, value)
        return self._grown(node, array, np.full([1] * array.ndim, block, array.dtype), axis, dim)

    def _block(self, node: ir.Node) -> int:
        """Returns how many rows of the indexed tensor belong to one row of the batch, if results of a node become the
        indices by which rows that follow the symbol are read or written; else 0."""
        left, seen = [node], set()
        while left:
            one = left.pop()
            if one in seen or one.domain:
                continue
            seen.add(one)
            if one.op_type in _INDEXING and self._opening.is_reached(one.inputs[0]):
                axis = one.attributes.get_int("axis", 0) if one.op_type == "Gather" else 0
                sizes = self._opening.static.get(one.inputs[0], ()) if one.inputs[0] is not None else ()
                return (sizes[axis] or 0) if -len(sizes) <= axis < len(sizes) else 0
            if one.op_type in _LEADING:
                left += [
                    use.node
                    for value in one.outputs
                    for use in value.uses()
                    if use.node.op_type in _LEADING or (use.node.op_type in _INDEXING and use.idx == 1)
                ]
        return 0

    def _is_zero(self, value: ir.Value) -> bool:
        """Whether a value is a constant of zeros in int64, which may be the number of the only row."""
        tensor = const_tensor(value)
        return tensor is not None and tensor.dtype == ir.DataType.INT64 and not np.asarray(tensor.numpy()).any()

    def _repeated(self, node: ir.Node, parts: np.ndarray | None, axis: int, dim: Dim, *, broadcast: bool) -> ir.Value:
        assert parts is not None
        value = self._opening.sizes.constant(np.ascontiguousarray(parts), "one_of_repeated")
        if broadcast and len(dim) == 1:
            return value
        shape = [int(one) for one in parts.shape]
        whole = [*shape[:axis], math.prod(shape[axis : axis + len(dim)]), *shape[axis + len(dim) :]]
        return self._expanded(node, value, whole, axis, dim)

    def _expanded(self, node: ir.Node, value: ir.Value, sizes: list[int], axis: int, dim: Dim) -> ir.Value:
        """Expands a value whose axis is split into the factors of `dim`, and joins the factors to one axis."""
        make, ones = self._opening.sizes, [1] * (len(sizes) - axis - 1)
        pieces = [((factor,), 1, 1) if isinstance(factor, Atom) else 1 for factor in dim]
        value = make.node(node, "Expand", [value, make.shape([*([1] * axis), *pieces, *ones], node)])
        if len(dim) == 1:
            return value
        return make.node(node, "Reshape", [value, make.shape([*sizes[:axis], (dim, 1, 1), *sizes[axis + 1 :]], node)])

    def _progression(self, node: ir.Node, value: ir.Value, array: np.ndarray, axis: int, dim: Dim) -> ir.Value:
        """Returns numbers that grow by the same step along the axis, for any size."""
        first = array.take([0], axis)
        step = array.take([1], axis) - first if array.shape[axis] > 1 else first * 0
        even = np.array_equal(first + step * self._along(array, axis), array)
        if array.dtype != np.int64 or not even or len(dim) != 1:
            why = f"{value.name} has another value at each index of axis {axis}, which holds {factors.text(dim)}"
            raise self._opening.refuse(node, why)
        return self._grown(node, first, step, axis, dim)

    def _along(self, array: np.ndarray, axis: int) -> np.ndarray:
        """Returns 0, 1, 2, … along an axis."""
        return np.arange(array.shape[axis]).reshape([-1 if at == axis else 1 for at in range(array.ndim)])

    def _grown(self, node: ir.Node, first: np.ndarray, step: np.ndarray, axis: int, dim: Dim) -> ir.Value:
        """Returns `first` plus the step times a Range of the size `dim` along the axis."""
        make = self._opening.sizes
        scalar = [make.constant(np.array(number, np.int64)) for number in (0, 1)]
        end = make.node(node, "Reshape", [make.shape([(dim, 1, 1)], node), make.constant(np.zeros(0, np.int64))])
        counted = make.node(node, "Range", [scalar[0], end, scalar[1]])
        along = make.constant([-1 if at == axis else 1 for at in range(first.ndim)])
        shaped = make.node(node, "Reshape", [counted, along])
        grown = make.node(node, "Mul", [shaped, make.constant(step)])
        return make.node(node, "Add", [grown, make.constant(first)])

    def _array(self, node: ir.Node, value: ir.Value) -> np.ndarray:
        tensor = const_tensor(value)
        if tensor is not None:
            return np.asarray(tensor.numpy())
        made_by = value.producer()
        if made_by is None or made_by.graph is not self._opening.work.model.graph:
            raise self._opening.refuse(
                node, f"{value.name} is computed in the body of a Loop or Scan, with a fixed size"
            )
        part = cut(self._opening.work.model, (), [value.name or ""])
        found = run(part.model, {one.name or "": self._zeros(one) for one in part.model.graph.inputs}).outputs
        return np.asarray(next(iter(found.values())))

    def _zeros(self, port: ir.Value) -> np.ndarray:
        """Returns zeros of the input's original size. The computed value depends on sizes only, so the elements do not
        matter."""
        inputs = {value.name: value for value in self._opening.work.model.graph.inputs}
        sizes = [size or 1 for size in self._opening.static[inputs[port.name]]]
        if port.dtype is None or port.dtype is ir.DataType.STRING:
            return np.full(sizes, "", object)
        return np.zeros(sizes, port.dtype.numpy())
