"""Weights of matrix products in blocks of 4 bits, by NNCF."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods._nncf import NncfMethod, samples
from onnxsmith.precision.methods.base import Layer, Work
from onnxsmith.precision.methods.int4 import Int4

SYMMETRIC = "symmetric blocks"
ZERO_POINTS = "blocks with a zero point"
_BLOCK = 32
"""Elements of a block, as in `int4`. NNCF leaves a matrix alone whose columns are no multiple of it."""
_MATRIX = 2


class Int4Nncf(NncfMethod):
    """As int4, with scales that NNCF chooses by the activations that the data gives (AWQ, scale estimation). The
    weights are stored as DequantizeLinear in blocks, which onnxruntime computes as MatMulNBits."""

    title = "int4 weights of matrix products, by NNCF"
    changes = "MatMul and Gemm with a constant matrix as their second operand, with a multiple of 32 rows"
    opset = 21  # the first whose DequantizeLinear has blocks

    def opset_why(self, form: Form) -> str:
        return "DequantizeLinear has blocks and int4 from opset 21 on"

    def schemes(self, work: Work) -> tuple[str, ...]:
        return SYMMETRIC, ZERO_POINTS

    def layers(self, work: Work) -> list[Layer]:
        divisible = {node.name for node in work.model.graph if len(node.inputs) > 1 and _rows(node) % _BLOCK == 0}
        return [layer for layer in Int4().layers(work) if layer.name in divisible]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        changed = {layer.name for layer in self.layers(work)} - keep
        return work.arithmetic.quantised(
            "four_bits",
            {node.name or "" for node in work.model.graph} - changed,
            of=written_out,
            samples=samples(work),
            symmetric=work.scheme != ZERO_POINTS,
            block=_BLOCK,
        )


def _rows(node: ir.Node) -> int:
    """The length of the axis over which a product sums; 1 if the second operand is no constant matrix."""
    tensor = node.inputs[1].const_value if node.inputs[1] is not None else None
    shape = tensor.shape.numpy() if tensor is not None else ()
    if len(shape) != _MATRIX:
        return 1
    return shape[1 if node.attributes.get_int("transB", 0) else 0]
