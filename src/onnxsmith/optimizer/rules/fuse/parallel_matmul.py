"""Products of one value with several constant matrices become one product and a `Split`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _node_order
from onnxsmith.optimizer.rules._patterns import FLOATS
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._bundles import Region

_MOST_WIDTHS = 8
"""The largest ratio of the joined product's width to the width of x. A choice: the whole joined product is in memory at
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
            return None if node in own else NoMatch("the matrix is used elsewhere too")
        from onnxsmith.optimizer.rules import _bundle_ops
        from onnxsmith.optimizer.rules._bundles import bundle

        for products in _groups(_node_order.first_to_last(own), node):
            root = bundle([product.outputs[0] for product in products], -1)
            found = _bundle_ops.region(root) if root is not None else None
            if found is None or found.saved + len(products) - 1 <= 0 or _bundle_ops.waits(found):
                continue
            if sum(found.root.sizes) > _MOST_WIDTHS * shape[0]:
                return NoMatch("together they would be much wider than what they are made of")
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
    tensors = [ir.convenience.get_const_tensor(weight) for weight in weights if weight is not None]
    known = [tensor for tensor in tensors if tensor is not None]

    def join() -> ir.TensorProtocol:
        arrays: list[npt.NDArray[Any]] = [tensor.numpy() for tensor in known]
        return ir.Tensor(np.concatenate(arrays, axis=1))

    shapes = [tensor.shape.numpy() for tensor in known]
    return ir.LazyTensor(
        join, dtype=known[0].dtype, shape=ir.Shape([shapes[0][0], sum(columns for _, columns in shapes)])
    )
