"""Weights of matrix products in blocks of 4 bits."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.keeping import Keep
from onnxsmith.precision.methods._gemm import is_plain, written_out
from onnxsmith.precision.methods.base import Layer, Method, Work, constant_bytes

_BLOCK = 32
"""Elements of a block. The smallest that each provider of MatMulNBits computes; smaller blocks are more exact."""
_MATRIX = 2


class Int4(Method):
    """The weights are stored in blocks of 32 elements with 4 bits, and computed as MatMulNBits with float32
    activations. Gemm becomes MatMul and Add. No data is needed."""

    title = "int4 weights of matrix products"
    changes = "MatMul and Gemm with a constant matrix as their second operand"
    opset = 13

    def layers(self, work: Work) -> list[Layer]:
        return [
            Layer(node.name or "", node.op_type, constant_bytes(node))
            for node in work.model.graph
            if ((node.op_type == "MatMul" and not node.domain) or is_plain(node)) and _is_weight(node.inputs[1])
        ]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        return work.arithmetic.quantised(
            "four_bits",
            keep,
            of=written_out,
            form="QOperator",
            block=_BLOCK,
            symmetric=False,
            accuracy_level=0,
            algorithm="default",
        )


def _is_weight(value: ir.Value | None) -> bool:
    tensor = value.const_value if value is not None else None
    return tensor is not None and len(tensor.shape) == _MATRIX and tensor.dtype == ir.DataType.FLOAT
