"""Matrix products whose weights are stored in blocks of few bits."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_out


class BlockQuantisedProduct(MacRule):
    """Output elements · K, where the attribute `K` is the length of the dot products. Unpacking is not counted.

    Source: onnxruntime's documentation of the operators, docs/ContribOperators.md.
    """

    operators = ("com.microsoft::MatMulBnb4", "com.microsoft::MatMulNBits")

    def products(self, node: ir.Node) -> Products | None:
        out, length = dims_out(node), node.attributes.get_int("K", 0)
        return [(*out, length)] if out is not None and length else None
