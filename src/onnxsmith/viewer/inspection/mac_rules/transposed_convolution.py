"""Transposed convolutions."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in


class TransposedConvolution(MacRule):
    """Each input element is multiplied by its filters: input elements · output channels / group · kernel elements.

    Source: the operator's weight has the shape [channels, output channels / group, *kernel] (ONNX, ConvTranspose).
    """

    operators = ("ConvTranspose",)

    def products(self, node: ir.Node) -> Products | None:
        data, weight = dims_in(node, 0), dims_in(node, 1)
        return None if data is None or weight is None else [(*data, *weight[1:])]
