"""Gemm: columns of the result begin, columns of the first operand end."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class Gemm(Operator):
    """The weight is the second operand, [in, out], or [out, in] with `transB`."""

    ops = ("Gemm",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias))) or integer(node, "transA", 0):
            return
        assert x is not None
        assert weight is not None
        outer = 0 if integer(node, "transB", 0) else 1
        size = static(weight, outer)
        columns = None if bias is None else rank(bias)
        if static(y, 1) != size or (bias is not None and columns == 2 and static(bias, 0) != 1):
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 1 - outer)
            links.sums(x, 1, weight, 1 - outer)
        links.open(y, 1)
        links.tie(weight, outer, y, 1)
        if bias is not None and columns and static(bias, columns - 1) == size and size != 1:
            links.tie(y, 1, bias, columns - 1)
