"""Fuses products of matrices with a bias, a factor or a transposed weight, and joins products of one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _node_order, _views
from onnxsmith.optimizer.rules._fold_into_weights import AfterLinear
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import FLOATS, read_elsewhere
from onnxsmith.optimizer.rules._quantized_products import Scaled, is_followed_by_bias, scaled
from onnxsmith.optimizer.rules._views import perm
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found
    from onnxsmith.optimizer.rules._bundles import Region


class GemmBias(AfterLinear):
    """Gemm(x, W, b) + c is one Gemm with the bias beta·b + c, if c is one number, or one number for each column of W.
    Gemm(x, W, b) - c has the bias beta·b - c. fuse/matmul-add-gemm turns a MatMul into a Gemm.

    The bias is computed in float64 and stored in its old dtype.

    Refused:
    1. The product has other readers, or is a graph output.
    2. The Gemm has a bias that is not a constant, or that varies along the rows.
    3. The constant varies along other axes than the last, or raises the rank.
    4. The shape of the weights is not known.
    5. The sum of the two overflows.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, 2}, float[1,2] c = {0.5, -1}> {
            a = Gemm <beta = 2.0> (x, w, b)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] b = {2.5, 3}> {
            y = Gemm(x, w, b)
        }
    """

    anchor = ("Add", "Sub")
    operators = ("Gemm",)


class MatmulAddGemm(PatternRule):
    """MatMul(x, W) + c with a matrix x and constant W and c is Gemm(x, W, c). Tensors of more dimensions are no match,
    because they would need a Reshape before and after. Zeros are left to algebra/neutral-operand, which leaves a
    MatMul.

    Refused:
    1. The product has other readers, or is a graph output.
    2. x is not provably a matrix, or W is not a matrix.
    3. The dtype is not known to be float16, float or double.
    4. The constant does not broadcast to one row: it has several rows, raises the rank, or is wider than W.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] c = {1, -1}> {
            a = MatMul(x, w)
            y = Add(a, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] c = {1, -1}> {
            y = Gemm(x, w, c)
        }
    """

    anchor = ("Add",)
    exactness = Exactness.REASSOCIATES
    pattern = "a = MatMul(x, c_w)  y = Add(a, c_b)"
    replacement = "Gemm(x, c_w, c_b)"
    since = 7
    form = "a last operand that broadcasts by itself"
    sole_reader = True

    def check(self, found: Found) -> Answer:
        rows, product = facts.dims(found["x"]), found.made("a").name or ""
        if rows is None or len(rows) != 2 or (weight := found.constant("c_w")).ndim != 2 or not weight.size:
            return NoMatch("it is not provably a product of two matrices", product)
        if found["c_w"].dtype not in FLOATS:
            return NoMatch("not every runtime has a Gemm for this dtype", product)
        added = found.constant("c_b")
        if added.ndim > 2 or added.shape[:-1] not in ((), (1,)) or added.shape[-1:] not in ((), (1,), weight.shape[1:]):
            return NoMatch("the constant is not one row as wide as the product", found["c_b"])
        return {} if added.any() else None


class MatmulMul(AfterLinear):
    """MatMul(x, W) * c is one MatMul with W·c, if c is one number, or one number for each column of W. Div by c and Neg
    are factors, too. Gemm's bias becomes b·c; MatMul(x, W) + b becomes MatMul(x, W·c) + b·c.

    The weights are computed in float64 and stored in their old dtype.

    Refused:
    1. The product, or its sum with the bias, has other readers, or is a graph output.
    2. A Gemm's weights or bias are not constants (a graph input with a default is not constant).
    3. The weights have other readers that are not scaled alike: the model would store the weights twice.
    4. The factor varies along other axes than the last, or raises the rank; or the bias does.
    5. A product overflows, or the intermediate result does although the final one does not. Or all products of a sum
       are too small to be normal numbers of the weights' dtype.
    6. The shape of a Gemm's weights is not known, or a MatMul's weights are not a matrix.

    A MatMul of two values that are not constants is no match, nor is a constant on its left.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y)
        <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, -1}, float c = {0.5}> {
            a = MatMul(x, w)
            s = Add(a, b)
            y = Mul(s, c)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,3,2] y) <float[2,2] w = {0.5, 1, 1.5, 2}, float[2] b = {0.5, -0.5}> {
            a = MatMul(x, w)
            y = Add(a, b)
        }
    """

    anchor = ("Mul", "Div", "Neg")
    operators = ("Gemm", "MatMul")


class TransposeGemm(PatternRule):
    """MatMul(x, Transpose(w)) of two matrices is Gemm with `transB`, which reads w unchanged. So a large weight in a
    data file need not be written again. torch's exporter writes a linear layer without bias like this.

    Refused:
    1. The dtype is not known to be floating point: few runtimes have Gemm for other dtypes.

    No match: operands that are not known to be matrices; a Transpose of a value that is not an initializer; a Transpose
    that fold/constant computes, after which the product stays a MatMul. fold/constant leaves large weights, weights
    whose transposed copy would make the file grow too much, and weights that a caller may replace.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x, float[2,3] v) => (float[N,2] y) <float[2,3] v = {1, 2, 3, 4, 5, 6}> {
            t = Transpose <perm = [1, 0]> (v)
            y = MatMul(x, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3] x, float[2,3] v) => (float[N,2] y) <float[2,3] v = {1, 2, 3, 4, 5, 6}> {
            y = Gemm <transB = 1> (x, v)
        }
    """

    anchor = ("MatMul",)
    exactness = Exactness.REASSOCIATES
    pattern = "t = Transpose(w)  y = MatMul(x, t)"
    replacement = "Gemm <transB = 1> (x, w)"
    since = 11
    form = "an optional last operand"

    def check(self, found: Found) -> Answer:
        weight = found["w"]
        # a default of an input may stay one, because the rule does not read its values
        if not weight.is_initializer() or [len(facts.dims(found[name]) or ()) for name in "xw"] != [2, 2]:
            return None
        if perm(found.made("t")) != [1, 0]:
            return None
        if facts.is_constant(weight) and facts.UNFOLDED not in found.made("t").meta:
            return None
        if weight.dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", weight)
        return {}


_MOST_WIDTHS = 8
"""Limits the ratio of the joined product's width to the width of x. A choice: the whole joined product is in memory at
once."""


class ParallelMatmul(Rule):
    """MatMul(x, U), MatMul(x, V), … are the parts of one MatMul(x, [U V …]), as query, key and value of an attention.
    Equal operators on each part (a bias, a Reshape to heads, a Transpose) become one operator before the Split: see
    algebra/split-branches. Fires if it saves nodes, so not for two products with different readers.

    The matrices are joined when the model is written, so that memory never holds two copies.

    Refused:
    1. A matrix has other readers: the model would store it twice.
    2. The joined product would be over 8 times as wide as x: all of it would be in memory at once.

    No match: weights that are not constant matrices of the same height and dtype; products of which one depends on the
    readers of another.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,1] a, float[N,1] b, float[N,1] c)
        <float[2,1] u = {1, 2}, float[2,1] v = {3, 4}, float[2,1] w = {5, 6}> {
            a = MatMul(x, u)
            b = MatMul(x, v)
            c = MatMul(x, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,1] a, float[N,1] b, float[N,1] c)
        <float[2,3] t = {1, 3, 5, 2, 4, 6}, int64[3] sizes = {1, 1, 1}> {
            p = MatMul(x, t)
            a, b, c = Split <axis = 1> (p, sizes)
        }
    """

    anchor = ("MatMul",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        x, shape = node.inputs[0], _matrix(node)
        if x is None or shape is None or facts.opset(node) < 7:
            return None
        twins = [other for other in dict.fromkeys(x.consumers()) if _is_twin(other, node, shape)]
        if len(twins) < 2:
            return None
        own = [other for other in twins if _is_own(other.inputs[1])]
        if len(own) < 2 or node not in own:
            return None if node in own else NoMatch("the matrix is also used elsewhere")
        from onnxsmith.optimizer.rules import _bundle_ops
        from onnxsmith.optimizer.rules._bundles import bundle

        for products in _groups(_node_order.first_to_last(own), node):
            root = bundle([product.outputs[0] for product in products], -1)
            found = _bundle_ops.region(root) if root is not None else None
            if found is None or found.saved + len(products) - 1 <= 0 or _bundle_ops.waits(found):
                continue
            if sum(found.root.sizes) > _MOST_WIDTHS * shape[0]:
                return NoMatch("the joined matrix would be much wider than the matrices that it is made of")
            before = found.before(products)
            if before is not None:
                return Match(node, (*found.nodes, *products), {"products": products, "region": found}, before)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        products: list[ir.Node] = match.found["products"]
        region: Region = match.found["region"]
        weights = [product.inputs[1] for product in products]
        joined = tape.initializer(_side_by_side(weights), name=f"{getattr(weights[0], 'name', '')}_joined")
        whole = tape.op("MatMul", [match.node.inputs[0], joined])
        return region.write(tape, whole, facts.opset(match.node))


def _matrix(node: ir.Node) -> tuple[int, int] | None:
    """Returns the shape of the node's constant matrix."""
    weight = node.inputs[1]
    if weight is None or not facts.is_constant(weight):
        return None
    dims = facts.dims(weight)
    if dims is None or len(dims) != 2 or weight.dtype not in FLOATS:
        return None
    height, width = dims
    return (height, width) if isinstance(height, int) and isinstance(width, int) and height and width else None


def _is_twin(other: ir.Node, node: ir.Node, shape: tuple[int, int]) -> bool:
    if other.op_type != "MatMul" or other.domain or other.graph is not node.graph:
        return False
    if other.inputs[0] is not node.inputs[0] or other.inputs[1] is other.inputs[0]:
        return False
    theirs, weights = _matrix(other), [one.inputs[1] for one in (other, node)]
    return theirs is not None and theirs[0] == shape[0] and len({weight.dtype for weight in weights if weight}) == 1


def _is_own(weight: ir.Value | None) -> bool:
    return weight is not None and len(weight.uses()) == 1 and not weight.is_graph_output()


def _groups(products: list[ir.Node], node: ir.Node) -> Iterator[list[ir.Node]]:
    """Yields groups of products to join with `node`: products with the same readers, then all."""
    way = _way(node)
    same = [other for other in products if _way(other) == way]
    yield from (group for group in (same, products) if len(group) > 1)


def _way(product: ir.Node) -> tuple[str, ...]:
    """Returns the operators that read the product, after constant summands and factors."""
    value = product.outputs[0]
    readers = list(value.consumers())
    while len(readers) == 1 and readers[0].op_type in ("Add", "Mul", "Sub", "Div"):
        others = [other for other in readers[0].inputs if other is not value and other is not None]
        if not all(facts.is_constant(other) for other in others):
            break
        value = readers[0].outputs[0]
        readers = list(value.consumers())
    return tuple(sorted(reader.op_type for reader in readers))


def _side_by_side(weights: Sequence[ir.Value | None]) -> ir.TensorProtocol:
    """Returns the joined matrix, which is computed when it is read."""
    tensors = [const_tensor(weight) for weight in weights if weight is not None]
    known = [tensor for tensor in tensors if tensor is not None]

    def join() -> ir.TensorProtocol:
        arrays: list[npt.NDArray[Any]] = [tensor.numpy() for tensor in known]
        return ir.Tensor(np.concatenate(arrays, axis=1))

    shapes = [tensor.shape.numpy() for tensor in known]
    return ir.LazyTensor(
        join, dtype=known[0].dtype, shape=ir.Shape([shapes[0][0], sum(columns for _, columns in shapes)])
    )


_MOST_READERS = 4
"""Limits the nodes from a product to its last node: Cast, Mul, Add, and one in reserve. A choice that bounds the
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
        own = _scaled_end(node)
        x = node.inputs[0]
        if own is None or x is None or facts.opset(node) < 13:
            return None
        ends = [_scaled_end(other) for other in _node_order.first_to_last(_integer_twins(node))]
        found = [end for end in ends if end is not None and (end.bias is None) == (own.bias is None)]
        found = [end for end in found if end.a_scale is own.a_scale]
        if len(found) < 2 or found[0].product is not node:
            return None
        for end in found:
            weight = end.product.inputs[1]
            if weight is None or len(weight.uses()) > 1:
                return NoMatch("the matrix is also used elsewhere", weight or "")
            refusal = read_elsewhere(end.nodes)
            if refusal is not None:
                return refusal
        height = (facts.dims(node.inputs[1]) or (0,))[0]
        columns = sum(end.columns for end in found)
        if not isinstance(height, int) or columns > _MOST_WIDTHS * height:
            return NoMatch("the joined matrix would be much wider than the matrices are high")
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


def _integer_twins(node: ir.Node) -> list[ir.Node]:
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


def _scaled_end(product: ir.Node) -> Scaled | None:
    """Returns the scaled product, with its bias, that reads a MatMulInteger."""
    at = product
    for _ in range(_MOST_READERS):
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
