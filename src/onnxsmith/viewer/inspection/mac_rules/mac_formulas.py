"""Counts multiply-accumulates: of convolutions, matrix products, attention, recurrent layers, Fourier transforms."""

from __future__ import annotations

import re

import onnx_ir as ir

from onnxsmith.graph.shapes import known_integers, symbols
from onnxsmith.viewer.inspection.mac_rules.base import Dim, Dims, MacRule, Products, dims_in, dims_out, operand


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


class TransposedConvolution(MacRule):
    """Each input element is multiplied by its filters: input elements · output channels / group · kernel elements.

    Source: the operator's weight has the shape [channels, output channels / group, *kernel] (ONNX, ConvTranspose).
    """

    operators = ("ConvTranspose",)

    def products(self, node: ir.Node) -> Products | None:
        data, weight = dims_in(node, 0), dims_in(node, 1)
        return None if data is None or weight is None else [(*data, *weight[1:])]


class Gemm(MacRule):
    """Counts M · N · K, for A of [M, K], or [K, M] with `transA`.

    Source: the definition of the operator (ONNX, Gemm). The products with alpha and beta are not counted.
    """

    operators = ("Gemm", "com.microsoft::FusedGemm", "com.microsoft::QGemm")

    def products(self, node: ir.Node) -> Products | None:
        left, out = dims_in(node, 0), dims_out(node)
        if left is None or len(left) != 2 or out is None:
            return None
        return [(*out, left[0 if node.attributes.get_int("transA", 0) else 1])]


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


class BlockQuantisedProduct(MacRule):
    """Counts output elements · K, where the attribute `K` is the length of the dot products. Unpacking is not counted.

    Source: onnxruntime's documentation of the operators, docs/ContribOperators.md.
    """

    operators = ("com.microsoft::MatMulBnb4", "com.microsoft::MatMulNBits")

    def products(self, node: ir.Node) -> Products | None:
        out, length = dims_out(node), node.attributes.get_int("K", 0)
        return [(*out, length)] if out is not None and length else None


class Einsum(MacRule):
    """Counts the product of the sizes of all labels, once for each operand after the first; 0 for one operand.

    Source: the definition of the operator (ONNX, Einsum) as nested loops over all labels. A runtime that contracts
    three or more operands pair by pair may need fewer.
    """

    operators = ("Einsum",)

    def products(self, node: ir.Node) -> Products | None:
        equation = re.sub(r"\s", "", node.attributes.get_string("equation", "") or "")
        terms = equation.partition("->")[0].split(",")
        if len(terms) != len(node.inputs):
            return None
        sizes: dict[str, list[Dim]] = {}
        for index, term in enumerate(terms):
            shape = dims_in(node, index)
            labels = None if shape is None else _labels(term, shape)
            if shape is None or labels is None:
                return None
            for label, dim in zip(labels, shape, strict=True):
                sizes.setdefault(label, []).append(dim)
        whole = [symbols.broadcast(found) for found in sizes.values()]
        known = [dim for dim in whole if dim is not None]
        return [(len(terms) - 1, *known)] if len(known) == len(whole) else None


def _labels(term: str, shape: Dims) -> list[str] | None:
    """Returns a label for each axis; the axes of an ellipsis are numbered from the right. Returns None if the ranks
    differ."""
    before, dots, after = term.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        return None
    return [*before, *(f"...{hidden - place}" for place in range(hidden)), *after]


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


class JointAttention(MacRule):
    """Counts onnxruntime's attention that makes Q, K and V itself, and packed ones.

    The count is that of the product of the input, [batch, length, width], with the weights, [width, Q + K + V], and
    keys · 2 · elements of the output, where the keys are those of this call and the cached keys.

    Source: as `RuntimeAttention`; the operands are those of docs/ContribOperators.md of onnxruntime.
    """

    operators = ("com.microsoft::Attention", "com.microsoft::QAttention")

    def products(self, node: ir.Node) -> Products | None:
        rows, weight, out = dims_in(node, 0), dims_in(node, 1), dims_out(node)
        if rows is None or len(rows) != 3 or weight is None or len(weight) != 2 or out is None:
            return None
        lengths: list[Dim] = [rows[1]]
        past_at = 4 if node.op_type == "Attention" else 8
        if len(node.inputs) > past_at and node.inputs[past_at] is not None:
            past = dims_in(node, past_at)  # [2, batch, heads, length, size]
            if past is None or len(past) != 5:
                return None
            lengths.append(past[3])
        return [(*rows, weight[1]), *((2, *out, length) for length in lengths)]


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


def transform(length: int) -> int:
    """Returns the real multiply-accumulates of one complex transform: 4 · N · (r₁ + … + rₘ), for N = r₁ · … · rₘ.

    Source: J. W. Cooley, J. W. Tukey, "An Algorithm for the Machine Calculation of Complex Fourier Series" (1965): N ·
    (r₁ + … + rₘ) operations, each a complex multiplication and addition, which are four real ones. A prime length has
    the N² operations of the definition. Real input counts the same as complex input.
    """
    rest, factor, total = length, 2, 0
    while factor * factor <= rest:
        while rest % factor == 0:
            rest, total = rest // factor, total + factor
        factor += 1
    return 4 * length * (total + (rest if rest > 1 else 0))


class Fourier(MacRule):
    """Counts transforms · the count of one transform, whose length must be a number.

    Source: the fast transform of Cooley and Tukey (`transform`); operands and axes as in ONNX, DFT.
    """

    operators = ("DFT",)

    def products(self, node: ir.Node) -> Products | None:
        data, axis = dims_in(node, 0), _axis(node)
        if data is None or axis is None or not -len(data) <= axis < len(data):
            return None
        given = known_integers.elements(operand(node, 1))
        length = data[axis] if operand(node, 1) is None else given[0] if given else None
        if not isinstance(length, int):
            return None
        others = [dim for index, dim in enumerate(data[:-1]) if index != axis % len(data)]
        return [(*others, transform(length))]


def _axis(node: ir.Node) -> int | None:
    """Returns the transformed axis; None if the axis is not a constant, or if the opset that decides it is unknown."""
    if "axis" in node.attributes:
        return node.attributes.get_int("axis", 1)
    if operand(node, 2) is not None:
        found = known_integers.elements(operand(node, 2))
        return found[0] if found and isinstance(found[0], int) else None
    data = dims_in(node, 0)
    if data is not None and len(data) == 3:
        return 1  # the default of every opset: 1 before opset 20, -2 since
    version = node.version or (node.graph.opset_imports.get("") if isinstance(node.graph, ir.Graph) else None)
    return None if version is None else 1 if version < 20 else -2


class ShortTimeFourier(MacRule):
    """Counts frames · (the count of one transform + the window's products), for a frame length that is a number.

    Source: the fast transform of Cooley and Tukey (`transform`); operands as in ONNX, STFT.
    """

    operators = ("STFT",)

    def products(self, node: ir.Node) -> Products | None:
        out, length = dims_out(node), _length(node)
        if out is None or len(out) != 4 or not isinstance(length, int):
            return None
        return [(*out[:2], transform(length) + length * (operand(node, 2) is not None))]


def _length(node: ir.Node) -> Dim | None:
    given = known_integers.elements(operand(node, 3))
    if given:
        return given[0]
    window = dims_in(node, 2)
    return window[0] if window else None
