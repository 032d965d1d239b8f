"""Removes reductions over dimensions of 1, and joins reductions with a view or a `Transpose`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._layout import REDUCING
from onnxsmith.optimizer.rules._patterns import FLOATS, integer, maker, read_elsewhere
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


@dataclass(frozen=True)
class _Reduction:
    """Holds the axes of a reduction, from 0 on and in order, and whether they stay with a size of 1."""

    axes: tuple[int, ...]
    kept: bool


def _reduction(node: ir.Node) -> _Reduction | None:
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
    return _Reduction(tuple(places), bool(kept))


def _write_reduction(
    tape: ir.tape.Tape, op_type: str, source: ir.Value | None, found: _Reduction, opset: int
) -> ir.Value:
    """Writes a reduction. Its axes are an input from opset 18 on (ReduceSum: 13), an attribute before."""
    attributes: dict[str, int | list[int]] = {} if found.kept else {"keepdims": 0}
    if opset < (13 if op_type == "ReduceSum" else 18):
        return tape.op(op_type, [source], {"axes": list(found.axes), **attributes})
    axes = tape.initializer(ir.Tensor(np.array(found.axes, np.int64)), name="axes")
    return tape.op(op_type, [source, axes], attributes)


class ReduceOne(Rule):
    """The maximum, minimum, sum, product or mean of one element is that element. So a reduction over dimensions of 1 is
    removed, or becomes a Squeeze if it drops these dimensions.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4] x) => (float[N,4] y) {
            a = ReduceMean <axes = [1], keepdims = 1> (x)
            y = ReduceMax <axes = [-2], keepdims = 0> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4] x) => (float[N,4] y) <int64[1] axes = {1}> {
            y = Squeeze(x, axes)
        }
    """

    anchor = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found, dims, source = _reduction(node), facts.dims(node.inputs[0]), node.inputs[0]
        if found is None or dims is None or source is None or any(dims[axis] != 1 for axis in found.axes):
            return None
        if found.kept or not found.axes:
            return Match(node, (node,), {"source": source})
        return Match(node, (node,), {"axes": found.axes})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "source" in match.found:
            source: ir.Value = match.found["source"]
            return source
        axes = list(match.found["axes"])
        if facts.opset(match.node) < 13:
            return tape.op("Squeeze", [match.node.inputs[0]], {"axes": axes})
        given = tape.initializer(ir.Tensor(np.array(axes, np.int64)), name="axes")
        return tape.op("Squeeze", [match.node.inputs[0], given])


_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}


class ReduceView(Rule):
    """A reduction that keeps its axes, and a Squeeze of them, is a reduction that drops them. A reduction that drops
    its axes, and an Unsqueeze of them, is a reduction that keeps them. Reshape and Flatten with the same effect count,
    too. A global pool always keeps its axes and takes the mean or the maximum over them: it becomes ReduceMean or
    ReduceMax.

    Refused:
    1. The reduction has other readers, or is a graph output.

    Views are no match if their effect is not provably the same.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) <int64[2] s = {2, 3}> {
            a = GlobalAveragePool(x)
            y = Squeeze(a, s)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            y = ReduceMean <axes = [2, 3], keepdims = 0> (x)
        }
    """

    anchor = _views.VIEWS
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        reducing = maker(node.inputs[0], node, *REDUCING, *_POOLS)
        found = _reduction_or_pool(reducing) if reducing is not None else None
        if reducing is None or found is None:
            return None
        wanted = _Reduction(found.axes, not found.kept)
        dims = facts.dims(reducing.inputs[0]) or ()
        after: Sequence[facts.Element | None] = [1 if axis in found.axes else dim for axis, dim in enumerate(dims)]
        if not wanted.kept:
            after = [dim for axis, dim in enumerate(dims) if axis not in found.axes]
        if not facts.same(facts.dims(node.outputs[0]), after):
            return None
        return read_elsewhere((node, reducing)) or Match(node, (node, reducing), {"wanted": wanted})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        reducing = match.nodes[1]
        op_type = _POOLS.get(reducing.op_type, reducing.op_type)
        return _write_reduction(tape, op_type, reducing.inputs[0], match.found["wanted"], facts.opset(match.node))


def _reduction_or_pool(node: ir.Node) -> _Reduction | None:
    if node.op_type not in _POOLS:
        return _reduction(node)
    dims = facts.dims(node.inputs[0])
    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    if dims is None or len(dims) < 3 or dtype not in FLOATS:
        return None
    return _Reduction(tuple(range(2, len(dims))), kept=True)


class TransposeReduce(Rule):
    """A reduction removes axes, or reduces them to size 1. If the other axes are then in their old order, the reduction
    can read the data before the Transpose, which is removed. An example is the mean over height and width in a network
    that was converted from channels last.

    Refused:
    1. The other axes change places: a Transpose would still be needed, after the reduction.

    Axes that are not known are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            t = Transpose <perm = [0, 2, 3, 1]> (x)
            y = ReduceMean <axes = [1, 2], keepdims = 0> (t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,4,4] x) => (float[N,2] y) {
            y = ReduceMean <axes = [2, 3], keepdims = 0> (x)
        }
    """

    anchor = REDUCING
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[0], node, "Transpose")
        order = perm(transpose) if transpose is not None else None
        found = _reduction(node) if order is not None else None
        if transpose is None or order is None or found is None or found.axes[-1:] >= (len(order),):
            return None
        axes = tuple(sorted(order[axis] for axis in found.axes))
        left = [one for axis, one in enumerate(order) if axis not in found.axes]
        if left != sorted(left) or (found.kept and axes != found.axes):
            return NoMatch("the remaining axes change their order")
        return Match(node, (node, transpose), {"source": transpose.inputs[0], "over": _Reduction(axes, found.kept)})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return _write_reduction(
            tape, match.node.op_type, match.found["source"], match.found["over"], facts.opset(match.node)
        )
