"""Convolutions."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in, dims_out


class Convolution(MacRule):
    """Each output element is a dot product with one filter: output elements · channels / group · kernel elements.

    Source: the operator's weight has the shape [filters, channels / group, *kernel] (ONNX, Conv). For DeformConv the
    interpolation of the samples is not counted.
    """

    operators = (
        "CausalConvWithState", "Conv", "ConvInteger", "DeformConv", "QLinearConv",
        "com.microsoft::FusedConv", "com.microsoft::NhwcFusedConv", "com.microsoft::QLinearConv",
    )  # fmt: skip

    def products(self, node: ir.Node) -> Products | None:
        weight, out = dims_in(node, 3 if node.op_type == "QLinearConv" else 1), dims_out(node)
        return None if weight is None or out is None else [(*out, *weight[1:])]
