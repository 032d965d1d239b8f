"""Replaces a `Gather` at indices that are computed, but known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.affine import Affine, affine
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.graph.structure.uses import freed
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST_VIEWS = 8
"""Limits the views that are followed back. A choice that bounds the cost."""


class GatherOne(Rule):
    """If all indices are provably the same number, a Gather is an Expand of that element. Token types that are no graph
    input are an example. With constant data the element is folded. A broadcasting operator needs no Expand
    (shape/expand-before-broadcast).

    Refused:
    1. The rewrite would add more nodes than it removes. Views on the way do not count, because other rules remove them.

    No match: indices of unknown value or shape, and indices out of range.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,T,3] y)
        <float[2,3] table = {1, 2, 3, 4, 5, 6}, int64 zero = {0}, int64[1] axes = {0}> {
            s = Shape(x)
            a = Expand(zero, s)
            b = Unsqueeze(a, axes)
            c = Squeeze(b, axes)
            y = Gather(table, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,T,3] y)
        <float[2,3] table = {1, 2, 3, 4, 5, 6}, int64[1,1] index = {0}, int64[1] one = {1}> {
            s = Shape(x)
            r = Gather(table, index)
            t = Concat <axis = 0> (s, one)
            y = Expand(r, t)
        }
    """

    anchor = ("Gather",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        data, indices = node.inputs[0], node.inputs[1]
        dims, counted, number = facts.dims(data), facts.dims(indices), uniform(indices)
        axis, found = integer(node, "axis", 0), _shape_of(indices)
        if data is None or not dims or not counted or axis is None or number is None or found is None:
            return None
        shape, views = found
        size = dims[axis]
        if not isinstance(size, int) or not -size <= int(number) < size:
            return None
        behind = len(dims) - axis % len(dims) - 1
        # an Expand, a Gather unless it is folded, and a Concat for the axes behind
        new = 1 + (facts.constant(data) is None) + (behind > 0)
        if new > freed(node, kept={shape}) - views:
            return NoMatch("the rewrite would need more nodes than it removes")
        index = np.full((1,) * len(counted), int(number), np.int64)
        return Match(node, (node,), {"index": index, "shape": shape, "behind": behind})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        data, target = match.node.inputs[0], match.found["shape"]
        index = tape.initializer(ir.tensor(match.found["index"]), name="index")
        one = tape.op("Gather", [data, index], dict(match.node.attributes))
        behind = match.found["behind"]
        if behind:
            target = tape.op("Concat", [target, _views.integers(tape, (1,) * behind, None)], {"axis": 0})
        return tape.op("Expand", [one, target])


def _shape_of(value: ir.Value | None) -> tuple[ir.Value, int] | None:
    """Returns the tensor with the shape of a value that repeats one number, and the number of views on the way that
    keep the shape."""
    dims = facts.dims(value)
    for views in range(_MOST_VIEWS):
        node = value.producer() if value is not None else None
        if node is None or node.domain or dims is None:
            return None
        if node.op_type in ("Expand", "ConstantOfShape"):
            target = node.inputs[-1]
            if target is not None and facts.same(facts.integers(target), dims):
                return target, views
            return None
        if node.op_type not in (*_views.VIEWS, "Identity"):
            return None
        value = node.inputs[0]
    return None


@dataclass(frozen=True)
class _Taken:
    """Describes the part of `data` that a gather takes. The data's axes from `first` on become, one by one, the axes
    `along` of the indices. The indices have `rank` axes, of which all others have size 1. `kept` axes of size 1 follow
    in the result."""

    data: ir.Value
    indices: tuple[ir.Value, ...]
    """Holds for each axis the indices that count along it."""
    first: int
    along: tuple[int, ...]
    rank: int
    kept: int = 0


class GatherPositions(Rule):
    """Indices that count 0, 1, 2, … along their own axes take an axis as it is, from its beginning. The Gather becomes
    a Slice if they may be fewer than the elements, a Transpose if axes change places, and an Unsqueeze if the indices
    have axes of size 1. torch writes `mask[batch[:, None, None, None], positions]` as such a GatherND, or as a Gather
    from the flattened mask; position embeddings are also looked up like this.

    With more indices than elements the Gather fails; the replacement may succeed then.

    Refused:
    1. The rewrite would add more nodes than it removes.

    No match: indices that count otherwise, or that do not vary along an axis of a size other than 1.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,1,T] y) <int64 zero = {0}, int64 one = {1}, int64[2] rows = {1, 2},
        int64[2] columns = {0, 1}, int64[1] last = {-1}> {
            s = Shape <start = 0, end = 1> (x)
            n = Squeeze(s)
            a = Range(zero, n, one)
            b = Unsqueeze(a, rows)
            u = Shape <start = 1> (x)
            t = Squeeze(u)
            c = Range(zero, t, one)
            d = Unsqueeze(c, columns)
            m = Max(b, d)
            k = Shape(m)
            e = Expand(b, k)
            f = Expand(d, k)
            g = Unsqueeze(e, last)
            h = Unsqueeze(f, last)
            i = Concat <axis = -1> (g, h)
            y = GatherND(x, i)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,T] x) => (float[N,1,T] y) <int64[1] axes = {1}> {
            y = Unsqueeze(x, axes)
        }
    """

    anchor = ("Gather", "GatherND")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        taken = _gathered(node) if node.op_type == "Gather" else _gathered_nd(node)
        ends = _ends(taken) if taken is not None else None
        if taken is None or ends is None:
            return None
        found = {"taken": taken, "ends": ends, "perm": _perm(taken), "axes": _ones(taken)}
        new = len(ends) + sum(len(facts.dims(end) or ()) == 0 for end in ends.values())
        new += sum(found[view] is not None for view in ("perm", "axes"))
        if new > freed(node, kept=set(ends.values())):
            return NoMatch("the rewrite would need more nodes than it removes")
        return Match(node, (node,), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        taken: _Taken = match.found["taken"]
        value = taken.data
        views_first = facts.constant(value) is not None  # views of constants are folded
        if views_first:
            value = _viewed(tape, match, value)
        cut: list[int] = []
        for place, end in match.found["ends"].items():
            axis = taken.first + (taken.along[place] if views_first else place)
            value = tape.op("Slice", [value, _known(tape, 0), _vector(tape, end), _known(tape, axis)])
            cut.append(place)
            value.shape = None if views_first else _cut(taken, cut)
        return value if views_first else _viewed(tape, match, value)


def _cut(taken: _Taken, places: Sequence[int]) -> ir.Shape:
    """Returns the data's shape with the number of indices at these places. The data has at least as many elements
    there, because the Gather fails otherwise."""
    dims = list(facts.dims(taken.data) or ())
    for place in places:
        length = (facts.dims(taken.indices[place]) or ())[taken.along[place]]
        dims[taken.first + place] = length
    return ir.Shape(dims)


def _viewed(tape: ir.tape.Tape, match: Match, value: ir.Value) -> ir.Value:
    if match.found["perm"] is not None:
        value = tape.op("Transpose", [value], {"perm": match.found["perm"]})
    axes = match.found["axes"]
    return value if axes is None else _views.with_axes(tape, "Unsqueeze", value, axes, None, facts.opset(match.node))


def _known(tape: ir.tape.Tape, number: int) -> ir.Value:
    return _views.integers(tape, [number], None)


def _vector(tape: ir.tape.Tape, end: ir.Value) -> ir.Value:
    return tape.op("Reshape", [end, _known(tape, 1)]) if not facts.dims(end) else end


def _perm(taken: _Taken) -> list[int] | None:
    """Returns the permutation of the data's axes in the result; None if they keep their order."""
    rank = len(facts.dims(taken.data) or ())
    places = sorted(range(len(taken.along)), key=taken.along.__getitem__)
    perm = [*range(taken.first), *(taken.first + place for place in places)]
    perm += range(len(perm), rank)
    return None if perm == sorted(perm) else perm


def _ones(taken: _Taken) -> list[int] | None:
    """Returns the axes of size 1 that the result has in addition to the data's axes."""
    axes = [taken.first + axis for axis in range(taken.rank) if axis not in taken.along]
    behind = len(facts.dims(taken.data) or ()) + len(axes)
    return [*axes, *range(behind, behind + taken.kept)] or None


def _ends(taken: _Taken) -> dict[int, ir.Value] | None:
    """Returns the number of taken elements for each axis that is not provably taken as a whole; None if unknown."""
    dims, ends = facts.dims(taken.data), {}
    for place, (indices, axis) in enumerate(zip(taken.indices, taken.along, strict=True)):
        there = None if dims is None else dims[taken.first + place]
        length = (facts.dims(indices) or ())[axis]
        # as many indices as elements: the whole axis is taken
        if length is not None and length == there:
            continue
        found = affine(indices)
        end = None if found is None else found.axes[axis][1]
        held = facts.integers(end)
        if end is None or held is None or len(held) != 1 or end.dtype is not ir.DataType.INT64:
            return None
        if not symbols.at_least(held[0], 0) or length not in (held[0], symbols.smallest([there, held[0]])):
            return None
        ends[place] = _before_squeeze(end)
    return ends


def _before_squeeze(end: ir.Value) -> ir.Value:
    """Returns the vector of one element from which a scalar was squeezed; returns other values as they are."""
    node = end.producer()
    source = node.inputs[0] if node is not None and node.op_type in ("Squeeze", "Reshape") and not node.domain else None
    return source if source is not None and facts.dims(source) == (1,) else end


def _counts_from_zero(found: Affine | None) -> int | None:
    """Returns the only axis along which a tensor counts 0, 1, 2, …; None for other tensors."""
    counting = [] if found is None else [axis for axis, step in enumerate(found.steps) if step != 0]
    if found is None or len(counting) != 1 or found.start != 0 or found.steps[counting[0]] != 1:
        return None
    return counting[0]


def _gathered_nd(node: ir.Node) -> _Taken | None:
    data, indices = node.inputs[0], node.inputs[1]
    dims = facts.dims(indices)
    if data is None or indices is None or not dims or integer(node, "batch_dims", 0) != 0:
        return None
    concat = maker(indices, node, "Concat")
    apart = concat is not None and integer(concat, "axis", 0) in (-1, len(dims) - 1)
    parts = tuple(part for part in (concat.inputs if concat is not None and apart else (indices,)) if part is not None)
    if any((facts.dims(part) or (0,))[-1] != 1 for part in parts):
        return None
    along = tuple(axis for axis in (_counts_from_zero(affine(part)) for part in parts) if axis is not None)
    if len(along) < len(parts) or len(set(along)) < len(along) or not _are_used(dims[:-1], along):
        return None
    return _Taken(data, parts, 0, along, len(dims) - 1)


def _gathered(node: ir.Node) -> _Taken | None:
    data, indices = node.inputs[0], node.inputs[1]
    dims, rank = facts.dims(indices), len(facts.dims(data) or ())
    first = integer(node, "axis", 0)
    if data is None or indices is None or not dims or not rank or first is None:
        return None
    found = affine(indices)
    if found is None or found.start != 0:
        return None
    along = _counts_from_zero(found)
    if along is not None:
        return _Taken(data, (indices,), first % rank, (along,), len(dims)) if _are_used(dims, (along,)) else None
    return _from_flat(node, indices, found) if first % rank == 0 else None


def _from_flat(node: ir.Node, indices: ir.Value, found: Affine) -> _Taken | None:
    """Reads indices into the first axis of flattened data as indices into the axes before the view that flattened it.
    The indices must count these axes one by one, the inner axes up to their ends."""
    view = maker(node.inputs[0], node, *_views.VIEWS)
    source = view.inputs[0] if view is not None else None
    dims, flat, counted = facts.dims(source), facts.dims(node.inputs[0]), facts.dims(indices)
    if source is None or dims is None or flat is None or counted is None:
        return None
    for first in range(2, len(dims) + 1):
        rest, behind = dims[first:], flat[1:]
        if symbols.product(dims[:first]) != flat[0] or not facts.same(rest, behind[: len(rest)]):
            continue
        if any(dim != 1 for dim in behind[len(rest) :]):
            continue
        along = _by_strides(dims[:first], found, counted)
        if along is not None and _are_used(counted, along):
            return _Taken(source, (indices,) * first, 0, along, len(counted), len(behind) - len(rest))
    return None


def _by_strides(dims: _views.Dims, found: Affine, counted: _views.Dims) -> tuple[int, ...] | None:
    """Returns for each of `dims` the axis of the indices that counts along it; None if there is none."""
    along: list[int] = []
    for place in range(len(dims)):
        stride = symbols.product(dims[place + 1 :])
        axes = [axis for axis, step in enumerate(found.steps) if step == stride and axis not in along]
        if stride is None or len(axes) != 1 or (place and counted[axes[0]] != dims[place]):
            return None
        along += axes
    left = [step for axis, step in enumerate(found.steps) if axis not in along]
    return None if any(step != 0 for step in left) else tuple(along)


def _are_used(dims: _views.Dims, along: Sequence[int]) -> bool:
    """Whether all other axes have size 1."""
    return all(dim == 1 for axis, dim in enumerate(dims) if axis not in along)
