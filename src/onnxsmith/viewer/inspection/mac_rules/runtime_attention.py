"""The attentions of onnxruntime whose query, key and value are separate inputs."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import Dim, MacRule, Products, dims_in, dims_out, operand

_PAST = {"MultiHeadAttention": 6, "GroupQueryAttention": 3}
"""The input that has the cached keys, of [batch, heads, length, size]."""


class RuntimeAttention(MacRule):
    """Keys · 2 · elements of the output, where the keys are those of this call and the cached ones.

    Source: as ONNX's Attention, with equal sizes of heads in Q, K and V; the operands are those of
    docs/ContribOperators.md of onnxruntime. Masked and causal scores are counted, too.
    """

    operators = ("com.microsoft::GroupQueryAttention", "com.microsoft::MultiHeadAttention")

    def products(self, node: ir.Node) -> Products | None:
        query, out = dims_in(node, 0), dims_out(node)
        key = query if operand(node, 1) is None else dims_in(node, 1)
        if query is None or out is None or len(out) != 3 or key is None:
            return None
        lengths: list[Dim] = [key[2] if len(key) == 4 else key[1]]
        if operand(node, _PAST[node.op_type]) is not None:
            past = dims_in(node, _PAST[node.op_type])
            if past is None or len(past) != 4:
                return None
            lengths.append(past[2])
        return [(2, *out, length) for length in lengths]
