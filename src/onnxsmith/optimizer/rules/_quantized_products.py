"""Finds products of integers that are scaled to floats, as dynamic quantisation writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, maker, only_reader, two_ways


@dataclass(frozen=True)
class Scaled:
    """Describes Cast(MatMulInteger(a, B, az, bz)) · (a_scale · b_scale) + bias with a constant matrix B: the product,
    the scales, the bias or None, and the nodes, the last first. `b_scale` is one number, or one for each column."""

    product: ir.Node
    a_scale: ir.Value
    b_scale: ir.Value
    bias: ir.Value | None
    nodes: tuple[ir.Node, ...]

    @property
    def columns(self) -> int:
        """Returns the number of columns of B."""
        dims = facts.dims(self.product.inputs[1])
        assert dims is not None
        assert isinstance(dims[1], int)
        return dims[1]

    def operand(self, index: int) -> ir.Value | None:
        """Returns an operand of the product; None if it is left out."""
        return self.product.inputs[index] if index < len(self.product.inputs) else None


def own_quantizer(found: Scaled) -> ir.Node | None:
    """Returns the DynamicQuantizeLinear of the left operand, if nothing else reads any of its results."""
    left, zero = found.operand(0), found.operand(2)
    maker_ = maker(left, found.product, "DynamicQuantizeLinear")
    if maker_ is None or list(maker_.outputs) != [left, found.a_scale, zero]:
        return None
    inside = {found.product, found.nodes[-2]}
    is_own = all(inside.issuperset(value.consumers()) and not value.is_graph_output() for value in maker_.outputs)
    return maker_ if is_own else None


def scaled(node: ir.Node) -> Scaled | None:
    """Returns the scaled product that ends at a Mul, or at the Add of its bias."""
    if node.op_type == "Mul":
        return next(_scaled(node), None)
    for value, bias in two_ways(node) if node.op_type == "Add" else ():
        last = maker(value, node, "Mul")
        found = next(_scaled(last), None) if last is not None else None
        if found is not None and facts.is_constant(bias) and facts.dims(bias) == (found.columns,):
            return Scaled(found.product, found.a_scale, found.b_scale, bias, (node, *found.nodes))
    return None


def is_followed_by_bias(node: ir.Node) -> bool:
    """Whether the only reader of a Mul adds the bias of the same product. Then the match starts at that Add."""
    reader = only_reader(node) if node.op_type == "Mul" else None
    found = scaled(reader) if reader is not None and reader.op_type == "Add" else None
    return found is not None and found.bias is not None


def _scaled(node: ir.Node) -> Iterator[Scaled]:
    for value, factor in two_ways(node):
        cast, scales = maker(value, node, "Cast"), maker(factor, node, "Mul")
        if cast is None or scales is None or integer(cast, "to", 0) != ir.DataType.FLOAT:
            continue
        product = maker(cast.inputs[0], node, "MatMulInteger")
        dims = facts.dims(product.inputs[1]) if product is not None else None
        if product is None or dims is None or len(dims) != 2 or not isinstance(dims[1], int):
            continue
        if not facts.is_constant(product.inputs[1]):
            continue
        for a_scale, b_scale in two_ways(scales):
            is_one = facts.dims(a_scale) == ()
            if is_one and facts.is_constant(b_scale) and facts.dims(b_scale) in ((), (1,), (dims[1],)):
                yield Scaled(product, a_scale, b_scale, None, (node, cast, scales, product))
