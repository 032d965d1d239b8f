"""Counts the multiply-accumulates of attention and recurrent layers."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import Dim, MacRule, Products, dims_in, dims_out, operand


class Attention(MacRule):
    """Counts keys · (elements of Q + elements of Y), where the keys are those of K and of `past_key`.

    Source: softmax(Q·Kᵀ)·V (Vaswani et al., "Attention Is All You Need", 2017, equation 1; ONNX, Attention): the scores
    need a dot product of a row of Q for each key, and each element of the output a sum over the keys. Masked and causal
    scores are counted too; the softmax is not.
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


_PAST = {"MultiHeadAttention": 6, "GroupQueryAttention": 3}
"""Maps an operator to the index of the input with the cached keys, of shape [batch, heads, length, size]."""


class RuntimeAttention(MacRule):
    """Counts the attentions of onnxruntime whose query, key and value are separate inputs.

    The count is keys · 2 · elements of the output, where the keys are those of this call and the cached keys.

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


class LinearAttention(MacRule):
    """Counts key size · (elements of V + elements of Y), and with a delta rule the elements of V once more.

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


class Recurrent(MacRule):
    """Counts steps · batch · (elements of W + elements of R), over both directions.

    Source: the equations of the operators (ONNX, LSTM, GRU, RNN): each step multiplies the input with W and the state
    with R. Peepholes and gates are element-wise and not counted; `sequence_lens` may stop a run earlier.
    """

    operators = ("GRU", "LSTM", "RNN", "com.microsoft::DynamicQuantizeLSTM")

    def products(self, node: ir.Node) -> Products | None:
        data, weight, recurrence = (dims_in(node, index) for index in range(3))
        if data is None or len(data) != 3 or weight is None or recurrence is None:
            return None
        return [(*data[:2], *weight), (*data[:2], *recurrence)]
