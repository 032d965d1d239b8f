"""Counts the multiply-accumulates of convolutions and matrix products whose shapes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.inspection.scopes import Scope
from onnxsmith.report.parts.model_summary import Macs, MacTerm

_Dim = int | str
_Shape = tuple[_Dim, ...]


def macs(nodes: Iterable[tuple[Scope, ir.Node]]) -> Macs:
    """Counts the multiply-accumulates of one run of a graph, from its nodes with inferred shapes.

    Bias additions are not counted; products with padded zeros are, as usual. Symbolic sizes stay symbols.
    """
    terms: Counter[tuple[str, ...]] = Counter()
    other: Counter[str] = Counter()
    counted = unknown = nested = 0
    for scope, node in nodes:
        kind = _KINDS.get((node.domain, node.op_type))
        if kind is None:
            if (node.domain, node.op_type) in _OTHERS:
                other[node.op_type] += 1
        elif scope.path:
            nested += 1
        elif (product := _product(node, kind)) is None:
            unknown += 1
        else:
            counted += 1
            terms[tuple(sorted(dim for dim in product if isinstance(dim, str)))] += _number(product)
    ordered = sorted(terms.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
    return Macs(tuple(MacTerm(n, dims) for dims, n in ordered), counted, unknown, nested, dict(sorted(other.items())))


@dataclass(frozen=True)
class _Kind:
    """A formula, with the indices of the data input and the weight input."""

    formula: Callable[[ir.Node, _Shape, _Shape, _Shape], list[_Dim] | None]
    data: int = 0
    weight: int = 1


def _product(node: ir.Node, kind: _Kind) -> list[_Dim] | None:
    """Returns the factors of the node's count; None if a needed shape is unknown."""
    if len(node.inputs) <= max(kind.data, kind.weight):
        return None
    data, weight = _shape(node.inputs[kind.data]), _shape(node.inputs[kind.weight])
    out = _shape(node.outputs[0])
    if data is None or weight is None or out is None:
        return None
    return kind.formula(node, data, weight, out)


def _shape(value: ir.Value | None) -> _Shape | None:
    """Returns the shape if every dimension is a number or has a name, else None."""
    if value is None:
        return None
    shape = value.shape
    if shape is None and value.const_value is not None:
        return tuple(value.const_value.shape.numpy())
    if shape is None:
        return None
    dims = [dim if isinstance(dim, int) else dim.value for dim in shape]
    named = [dim for dim in dims if dim is not None]
    return tuple(named) if len(named) == len(dims) else None


def _conv(node: ir.Node, data: _Shape, weight: _Shape, out: _Shape) -> list[_Dim] | None:
    """Conv: each output element needs one filter, of [channels / group, *kernel] weights."""
    return [*out, *weight[1:]]


def _conv_transpose(node: ir.Node, data: _Shape, weight: _Shape, out: _Shape) -> list[_Dim] | None:
    """ConvTranspose: each input element is multiplied by [out channels / group, *kernel] weights."""
    return [*data, *weight[1:]]


def _matmul(node: ir.Node, data: _Shape, weight: _Shape, out: _Shape) -> list[_Dim] | None:
    """MatMul: each output element is a dot product along the last axis of the first operand."""
    if not data or not weight:
        return None
    length = data[-1] if isinstance(data[-1], int) else weight[max(len(weight) - 2, 0)]
    return [*out, length]


def _gemm(node: ir.Node, data: _Shape, weight: _Shape, out: _Shape) -> list[_Dim] | None:
    """Gemm: as MatMul, the first operand transposed by `transA`."""
    transposed = node.attributes.get_int("transA", 0)
    return [*out, data[0 if transposed else 1]] if len(data) == 2 else None


def _number(product: list[_Dim]) -> int:
    number = 1
    for dim in product:
        if isinstance(dim, int):
            number *= dim
    return number


_KINDS = {
    ("", "Conv"): _Kind(_conv),
    ("", "ConvInteger"): _Kind(_conv),
    ("", "QLinearConv"): _Kind(_conv, 0, 3),
    ("", "ConvTranspose"): _Kind(_conv_transpose),
    ("", "MatMul"): _Kind(_matmul),
    ("", "MatMulInteger"): _Kind(_matmul),
    ("", "QLinearMatMul"): _Kind(_matmul, 0, 3),
    ("", "Gemm"): _Kind(_gemm),
    ("com.microsoft", "FusedConv"): _Kind(_conv),
    ("com.microsoft", "FusedGemm"): _Kind(_gemm),
}

_OTHERS = {("", op) for op in ("LSTM", "GRU", "RNN", "Einsum", "Attention", "DeformConv", "DFT", "STFT")} | {
    ("com.microsoft", op)
    for op in (
        "Attention",
        "FusedMatMul",
        "GroupQueryAttention",
        "MatMulNBits",
        "MultiHeadAttention",
        "QAttention",
        "QLinearConv",
        "QGemm",
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat",
    )
}
