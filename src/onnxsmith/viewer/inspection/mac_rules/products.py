"""Counts the multiply-accumulates of convolutions and matrix products."""

from __future__ import annotations

import re

import onnx_ir as ir

from onnxsmith.graph.shapes import symbols
from onnxsmith.viewer.inspection.mac_rules.base import Dim, Dims, MacRule, Products, dims_in, dims_out


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
