"""A product of matrices between `Reshape`s to a matrix and back."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer, maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


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
        refusal = _refused(product, bias, transposed == 1, len(before)) or read_elsewhere((node, product, rows))
        found = {"source": source, "weight": product.inputs[1], "bias": bias, "transposed": transposed}
        return refusal or Match(node, (node, product, rows), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        weight: ir.Value = match.found["weight"]
        if match.found["transposed"]:
            weight = tape.initializer(_turned(weight), name=f"{weight.name}_transposed")
        product = tape.op("MatMul", [match.found["source"], weight])
        bias = match.found["bias"]
        return product if bias is None else tape.op("Add", [product, bias])


def _refused(product: ir.Node, bias: ir.Value | None, transposed: bool, rank: int) -> NoMatch | None:
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
        return NoMatch("the weights are transposed and used elsewhere too", weight)
    dims = facts.dims(bias)
    if bias is not None and (dims is None or len(dims) > 2 or (len(dims) == 2 and dims[0] != 1)):
        return NoMatch("the bias is not known to be one row", bias)
    if bias is not None and dims is not None and len(dims) > rank:
        return NoMatch("the bias has more axes than the data", bias)
    return None


def _turned(weight: ir.Value) -> ir.TensorProtocol:
    """Returns the transposed matrix, computed only when it is read."""
    tensor = ir.convenience.get_const_tensor(weight)
    assert tensor is not None

    def turn() -> ir.TensorProtocol:
        return ir.Tensor(np.ascontiguousarray(tensor.numpy().T))

    return ir.LazyTensor(turn, dtype=tensor.dtype, shape=ir.Shape(tensor.shape.numpy()[::-1]))
