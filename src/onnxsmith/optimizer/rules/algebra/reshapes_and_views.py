"""Joins views in a row, and removes views around a product of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ReshapeChain(Rule):
    """Reshape, Flatten, Squeeze and Unsqueeze keep the elements and their order. So a Reshape after such an operator
    can read the operator's data instead, and is redundant if it restores that data's shape. Other readers of the
    intermediate value keep it.

    Refused:
    1. An element of the target is 0, the dimension that it copies is not provably the same before the first operator,
       and no other target gives the result.

    From opset 14 on (`allowzero`), a computed target whose elements are the sizes of the result is kept. Other computed
    targets that no constant can express are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[3] s = {-1, 2, 12}, int64[2] t = {-1, 24}> {
            a = Reshape(x, s)
            y = Reshape(a, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,6] x) => (float[N,24] y) <int64[2] t = {-1, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        middle = node.inputs[0]
        first = maker(middle, node, *_views.VIEWS)
        if first is None or first.inputs[0] is None or len(node.inputs) < 2:
            return None
        target = facts.constant(node.inputs[1])
        allowzero = integer(node, "allowzero", 0)
        before, after = facts.dims(first.inputs[0]), facts.dims(middle)
        found = {"source": first.inputs[0]}
        if target is not None and allowzero is not None:
            elements = enumerate(target.ravel().tolist())
            if all(_views.is_kept(before, after, element, axis, allowzero) for axis, element in elements):
                return Match(node, (node, first), found)
        wanted = facts.dims(node.outputs[0])
        # the second operator restores the shape that the first changed
        if facts.same(before, wanted):
            return Match(node, (node, first), {**found, "target": None})
        written = _views.target(before, wanted)
        if written is not None:
            return Match(node, (node, first), {**found, "target": written})
        if target is None:
            return Match(node, (node, first), {**found, "sizes": True}) if _is_shape_of_result(node, wanted) else None
        return NoMatch("the target copies a dimension that only the first result has")

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "target" in match.found:
            source: ir.Value = match.found["source"]
            return source if match.found["target"] is None else _views.reshaped(tape, match)
        attributes: dict[str, ir.Attr | int] = dict(match.node.attributes)
        if "sizes" in match.found:
            attributes["allowzero"] = 1
        return tape.op("Reshape", [match.found["source"], match.node.inputs[1]], attributes)


def _is_shape_of_result(node: ir.Node, wanted: Sequence[facts.Element | None] | None) -> bool:
    """Whether each element of a computed target is the size of the result, so that with `allowzero` the target means
    the same for any data."""
    elements = facts.integers(node.inputs[1])
    return facts.opset(node) >= 14 and elements is not None and facts.same(elements, wanted)


class ViewChain(Rule):
    """Unsqueeze, Squeeze, Flatten and Reshape keep the elements and their order, so two in a row become one. If the
    second restores the data's shape, both are removed. Two Unsqueezes become an Unsqueeze with the axes of both, and
    two Squeezes a Squeeze. Other pairs become a Reshape with a constant target. Other readers of the intermediate value
    keep it. If the second is a Reshape, algebra/reshape-chain handles it.

    Refused:
    1. No constant target gives the shape: more than one dimension is neither a number nor the data's dimension at the
       same place.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[1,N,1] y) <int64[1] first = {0}, int64[1] last = {-1}> {
            a = Unsqueeze(x, first)
            y = Unsqueeze(a, last)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[1,N,1] y) <int64[2] axes = {0, 2}> {
            y = Unsqueeze(x, axes)
        }
    """

    anchor = ("Unsqueeze", "Squeeze", "Flatten")
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        first = maker(node.inputs[0], node, *_views.VIEWS)
        source = first.inputs[0] if first is not None else None
        if first is None or source is None:
            return None
        found = {"source": source}
        outer, inner = _view_axes(node), _view_axes(first)
        before, after = facts.dims(source), facts.dims(node.outputs[0])
        undone = outer is not None and outer == inner and node.op_type == "Squeeze" and first.op_type == "Unsqueeze"
        if undone or facts.same(before, after):
            return Match(node, (node, first), found)
        if outer is not None and inner is not None and node.op_type == first.op_type:
            merged = _merged_axes(node.op_type, outer, inner)
            return Match(node, (node, first), {**found, "axes": merged})
        target = _views.target(before, after)
        if target is None:
            return NoMatch("more than one dimension differs from the data's dimension at the same position")
        return Match(node, (node, first), {**found, "target": target})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source: ir.Value = match.found["source"]
        if "target" in match.found:
            return _views.reshaped(tape, match)
        if "axes" not in match.found:
            return source
        node, merged = match.node, match.found["axes"]
        beside = node.inputs[1] if len(node.inputs) > 1 else None
        return _views.with_axes(tape, node.op_type, source, merged, beside, facts.opset(node))


def _view_axes(node: ir.Node) -> tuple[int, ...] | None:
    """Returns the axes of an Unsqueeze or Squeeze, counted in the larger shape; None for other operators."""
    if node.op_type not in ("Unsqueeze", "Squeeze"):
        return None
    longer = node.outputs[0] if node.op_type == "Unsqueeze" else node.inputs[0]
    return _views.axes(node, None if longer is None or longer.shape is None else len(longer.shape))


def _merged_axes(op_type: str, outer: tuple[int, ...], inner: tuple[int, ...]) -> list[int]:
    """Returns the axes of both nodes in the largest of the three shapes. `inner` are the axes of the node that runs
    first."""
    late, early = (outer, inner) if op_type == "Unsqueeze" else (inner, outer)
    # the later Unsqueeze's axes are final; those of the earlier Unsqueeze fill the free places
    free = (axis for axis in range(len(late) + max(early, default=0) + 1) if axis not in late)
    places = list(free)
    return sorted([*late, *(places[axis] for axis in early)])


class GemmBetweenReshapes(Rule):
    """MatMul multiplies the last axis of tensors of any rank. So a Gemm (or MatMul) whose data is reshaped to rows, and
    whose result is reshaped back, becomes a MatMul and an Add of the bias, without the Reshapes.

    Weights that a Gemm transposes are transposed when the model is written.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The Gemm transposes its data, or has an alpha or a beta other than 1.
    3. The weights are no constant matrix, or are transposed and have other readers.
    4. The bias varies along the rows, or has more axes than the data: it would raise the rank.

    The Reshapes are no match unless they provably keep the last axis and restore the other axes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[B,4,2] x) => (float[B,4,3] y)
        <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] c = {1, 2, 3}, int64[2] rows = {-1, 2}, int64[3] t = {-1, 4, 3}> {
            a = Reshape(x, rows)
            b = Gemm(a, w, c)
            y = Reshape(b, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[B,4,2] x) => (float[B,4,3] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] c = {1, 2, 3}> {
            a = MatMul(x, w)
            y = Add(a, c)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        product = maker(node.inputs[0], node, "Gemm", "MatMul")
        rows = maker(product.inputs[0], node, *_views.VIEWS) if product is not None else None
        source = rows.inputs[0] if rows is not None else None
        if product is None or rows is None or source is None:
            return None
        before, after, flat = facts.dims(source), _views.dims_after(node), _views.dims_after(rows)
        weight = facts.dims(product.inputs[1])
        if before is None or after is None or flat is None or len(flat) != 2 or weight is None or len(weight) != 2:
            return None
        transposed = integer(product, "transB", 0)
        height, width = weight[::-1] if transposed else weight
        if before[-1] != height or flat[-1] != height or not facts.same(before[:-1], after[:-1]) or after[-1] != width:
            return None
        bias = product.inputs[2] if len(product.inputs) > 2 else None
        refusal = _product_refusal(product, bias, transposed == 1, len(before)) or read_elsewhere((node, product, rows))
        found = {"source": source, "weight": product.inputs[1], "bias": bias, "transposed": transposed}
        return refusal or Match(node, (node, product, rows), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        weight: ir.Value = match.found["weight"]
        if match.found["transposed"]:
            weight = tape.initializer(_transposed(weight), name=f"{weight.name}_transposed")
        product = tape.op("MatMul", [match.found["source"], weight])
        bias = match.found["bias"]
        return product if bias is None else tape.op("Add", [product, bias])


def _product_refusal(product: ir.Node, bias: ir.Value | None, transposed: bool, rank: int) -> NoMatch | None:
    """Returns why a product may not become a MatMul and an Add; `rank` is that of the data before the Reshape."""
    where, weight = product.name or "", product.inputs[1]
    for name in ("alpha", "beta"):
        given = product.attributes.get(name)
        if given is not None and (given.is_ref() or given.as_float() != 1):
            return NoMatch(f"it multiplies with {name}", where)
    if integer(product, "transA", 0) != 0:
        return NoMatch("it transposes its data", where)
    if weight is None or not facts.is_constant(weight):
        return NoMatch("the weights are not constant", where)
    if transposed and len(weight.uses()) > 1:
        return NoMatch("the weights are transposed, but also used elsewhere", weight)
    dims = facts.dims(bias)
    if bias is not None and (dims is None or len(dims) > 2 or (len(dims) == 2 and dims[0] != 1)):
        return NoMatch("the bias is not known to be one row", bias)
    if bias is not None and dims is not None and len(dims) > rank:
        return NoMatch("the bias has more axes than the data", bias)
    return None


def _transposed(weight: ir.Value) -> ir.TensorProtocol:
    """Returns the transposed matrix, computed only when it is read."""
    tensor = const_tensor(weight)
    assert tensor is not None

    def turn() -> ir.TensorProtocol:
        return ir.Tensor(np.ascontiguousarray(tensor.numpy().T))

    return ir.LazyTensor(turn, dtype=tensor.dtype, shape=ir.Shape(tensor.shape.numpy()[::-1]))
