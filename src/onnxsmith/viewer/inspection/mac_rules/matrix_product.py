"""Matrix products with the semantics of numpy's `matmul`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in, dims_out


class MatrixProduct(MacRule):
    """Each output element is a dot product along the last axis of the first operand: output elements · its length.

    Source: the definition of the matrix product (ONNX, MatMul, which refers to numpy.matmul).
    """

    operators = (
        "MatMul", "MatMulInteger", "QLinearMatMul",
        "com.microsoft::DynamicQuantizeMatMul", "com.microsoft::FusedMatMul", "com.microsoft::MatMulIntegerToFloat",
    )  # fmt: skip

    def products(self, node: ir.Node) -> Products | None:
        left, out = dims_in(node, 0), dims_out(node)
        right = dims_in(node, 3 if node.op_type == "QLinearMatMul" else 1)
        if not left or not right or out is None:
            return None
        if node.op_type == "FusedMatMul" and any(name in node.attributes for name in ("transBatchA", "transBatchB")):
            return None
        lengths = (
            left[-2 if node.attributes.get_int("transA", 0) and len(left) > 1 else -1],
            right[-1 if node.attributes.get_int("transB", 0) or len(right) == 1 else -2],
        )
        return [(*out, next((length for length in lengths if isinstance(length, int)), lengths[0]))]
