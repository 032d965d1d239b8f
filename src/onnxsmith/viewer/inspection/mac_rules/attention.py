"""ONNX's Attention."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in, dims_out


class Attention(MacRule):
    """Keys · (elements of Q + elements of Y), where the keys are those of K and of `past_key`.

    Source: softmax(Q·Kᵀ)·V (Vaswani et al., "Attention Is All You Need", 2017, equation 1; ONNX, Attention): the scores
    need a dot product of a row of Q for each key, and each element of the output a sum over the keys. Masked and causal
    scores are counted, too; the softmax is not.
    """

    operators = ("Attention",)

    def products(self, node: ir.Node) -> Products | None:
        query, key, out = dims_in(node, 0), dims_in(node, 1), dims_out(node)
        if query is None or key is None or out is None or len(key) not in (3, 4):
            return None
        keys = [key[-2]]
        if len(node.inputs) > 4 and node.inputs[4] is not None:
            past = dims_in(node, 4)
            if past is None or len(past) != 4:
                return None
            keys.append(past[2])
        return [(*one, length) for length in keys for one in (query, out)]
