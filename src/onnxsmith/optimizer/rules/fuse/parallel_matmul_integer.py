"""Products of one quantised value with several constant matrices become one product and a `Split`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _node_order, _views
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules._quantized_products import Scaled, is_followed_by_bias, scaled
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_MOST_WIDTHS = 8
"""The largest ratio of the joined product's width to the height of the matrices. A choice: the whole joined product is
in memory at once."""
_READERS = 4
"""The most nodes from a product to its last node: Cast, Mul, Add, and one in reserve. A choice that bounds the
search."""


class ParallelMatmulInteger(Rule):
    """MatMulInteger(q, U), MatMulInteger(q, V), … with their scales and biases, are the parts of one product with [U V
    …], whose zero points and scales are given for each column. Dynamic quantisation writes the products of query, key
    and value like this. Each number is computed as before.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. A matrix has other readers: the model would store it twice.
    3. The joined product would be over 8 times as wide as the matrices are high.

    Matrices of another height or dtype, and products of which only some have a bias, are no match.

    Before:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2] x) => (float[N,1] a, float[N,2] b)
        <uint8[2,1] u = {1, 2}, uint8[2,2] v = {3, 4, 5, 6}, uint8 uz = {1}, uint8 vz = {2}, float us = {0.5},
         float vs = {0.25}> {
            q, s, z = DynamicQuantizeLinear(x)
            mu = MatMulInteger(q, u, z, uz)
            cu = Cast <to = 1> (mu)
            tu = Mul(s, us)
            a = Mul(cu, tu)
            mv = MatMulInteger(q, v, z, vz)
            cv = Cast <to = 1> (mv)
            tv = Mul(s, vs)
            b = Mul(cv, tv)
        }

    After:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[N,2] x) => (float[N,1] a, float[N,2] b)
        <uint8[2,3] w = {1, 3, 4, 2, 5, 6}, uint8[3] wz = {1, 2, 2}, float[3] ws = {0.5, 0.25, 0.25},
         int64[2] sizes = {1, 2}> {
            q, s, z = DynamicQuantizeLinear(x)
            m = MatMulInteger(q, w, z, wz)
            c = Cast <to = 1> (m)
            t = Mul(s, ws)
            f = Mul(c, t)
            a, b = Split <axis = -1> (f, sizes)
        }
    """

    anchor = ("MatMulInteger",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        own = _end(node)
        x = node.inputs[0]
        if own is None or x is None or facts.opset(node) < 13:
            return None
        ends = [_end(other) for other in _node_order.first_to_last(_twins(node))]
        found = [end for end in ends if end is not None and (end.bias is None) == (own.bias is None)]
        found = [end for end in found if end.a_scale is own.a_scale]
        if len(found) < 2 or found[0].product is not node:
            return None
        for end in found:
            weight = end.product.inputs[1]
            if weight is None or len(weight.uses()) > 1:
                return NoMatch("the matrix is used elsewhere too", weight or "")
            refusal = read_elsewhere(end.nodes)
            if refusal is not None:
                return refusal
        height = (facts.dims(node.inputs[1]) or (0,))[0]
        columns = sum(end.columns for end in found)
        if not isinstance(height, int) or columns > _MOST_WIDTHS * height:
            return NoMatch("together they would be much wider than the matrices are high")
        nodes = [inner for end in found for inner in end.nodes]
        return Match(node, tuple(nodes), {"ends": found}, before=node)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        ends: list[Scaled] = match.found["ends"]
        first = ends[0]
        name = getattr(first.product.inputs[1], "name", "")
        weights = np.concatenate([_array(end.product.inputs[1]) for end in ends], axis=1)
        zeros = _columns(ends, [end.operand(3) for end in ends], weights.dtype)
        scales = _columns(ends, [end.b_scale for end in ends], np.dtype(np.float32))
        matrix, zero, scale = (
            tape.initializer(ir.tensor(array), name=f"{name}_{kind}")
            for kind, array in (("joined", weights), ("zeros", zeros), ("scales", scales))
        )
        operands = [first.operand(0), matrix, first.operand(2), zero]
        product = tape.op("Cast", [tape.op("MatMulInteger", operands)], {"to": int(ir.DataType.FLOAT)})
        whole = tape.op("Mul", [product, tape.op("Mul", [first.a_scale, scale])])
        if first.bias is not None:
            bias = np.concatenate([_array(end.bias) for end in ends])
            whole = tape.op("Add", [whole, tape.initializer(ir.tensor(bias), name=f"{name}_bias")])
        sizes = _views.integers(tape, [end.columns for end in ends], None)
        parts = tape.op_multi_out("Split", [whole, sizes], {"axis": -1}, num_outputs=len(ends))
        return {end.nodes[0].outputs[0]: part for end, part in zip(ends, parts, strict=True)}


def _twins(node: ir.Node) -> list[ir.Node]:
    """Returns the products of the same left operand with matrices of the same height and dtype."""
    x, weight = node.inputs[:2]
    assert x is not None
    height = (facts.dims(weight) or (None,))[0]
    found = []
    for other in dict.fromkeys(x.consumers()):
        theirs = other.inputs[1] if other.op_type == node.op_type and not other.domain else None
        if theirs is None or weight is None or other.graph is not node.graph or other.inputs[0] is not x:
            continue
        is_alike = theirs.dtype is weight.dtype and (facts.dims(theirs) or (None,))[0] == height
        if is_alike and height is not None and other.inputs[2:3] == node.inputs[2:3]:
            found.append(other)
    return found


def _end(product: ir.Node) -> Scaled | None:
    """Returns the scaled product, with its bias, that reads a MatMulInteger."""
    at = product
    for _ in range(_READERS):
        readers = list(at.outputs[0].consumers())
        if len(readers) != 1 or readers[0].domain or readers[0].graph is not product.graph:
            return None
        at = readers[0]
        found = scaled(at)
        if found is not None and found.product is product and not is_followed_by_bias(at):
            return found
    return None


def _array(value: ir.Value | None) -> npt.NDArray[Any]:
    array = facts.constant(value)
    assert array is not None
    return array


def _columns(ends: Sequence[Scaled], values: Sequence[ir.Value | None], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Returns one number for each column. A number for a whole matrix is repeated; a missing number is 0."""
    parts = []
    for end, value in zip(ends, values, strict=True):
        array = np.zeros((), dtype) if value is None else _array(value)
        parts.append(np.broadcast_to(array.reshape(-1) if array.ndim else array, (end.columns,)))
    return np.concatenate(parts).astype(dtype)
