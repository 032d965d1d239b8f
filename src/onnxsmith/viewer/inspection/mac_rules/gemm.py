"""General matrix products of two matrices."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in, dims_out


class Gemm(MacRule):
    """M · N · K, for A of [M, K], or [K, M] with `transA`.

    Source: the definition of the operator (ONNX, Gemm). The products with alpha and beta are not counted.
    """

    operators = ("Gemm", "com.microsoft::FusedGemm", "com.microsoft::QGemm")

    def products(self, node: ir.Node) -> Products | None:
        left, out = dims_in(node, 0), dims_out(node)
        if left is None or len(left) != 2 or out is None:
            return None
        return [(*out, left[0 if node.attributes.get_int("transA", 0) else 1])]
