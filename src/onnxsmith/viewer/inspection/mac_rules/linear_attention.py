"""ONNX's LinearAttention."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in, dims_out


class LinearAttention(MacRule):
    """Key size · (elements of V + elements of Y), and with a delta rule the elements of V once more.

    Source: the recurrence of the operator (ONNX, LinearAttention): for each token the state S of [key size, value size]
    of a head grows by k ⊗ v, the delta rules read kᵀS before, and each query head reads qᵀS. The decay scales the state
    element by element and is not counted. Computing in chunks needs other numbers of products.
    """

    operators = ("LinearAttention",)

    def products(self, node: ir.Node) -> Products | None:
        query, value, out = dims_in(node, 0), dims_in(node, 2), dims_out(node)
        heads = node.attributes.get_int("q_num_heads", 0)
        if query is None or value is None or out is None or not heads or not isinstance(query[-1], int):
            return None
        size = query[-1] // heads
        reads = 2 if "delta" in (node.attributes.get_string("update_rule", "gated_delta") or "") else 1
        return [(reads, *value, size), (*out, size)]
