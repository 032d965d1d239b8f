"""Stores weights in 8 bits; activations are quantised when the model runs."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods._products import namesakes
from onnxsmith.precision.methods.base import Layer, Method, Work, constant_bytes, is_embedding

_CONTRIB = "com.microsoft"
_OPERATORS = {
    "MatMul": "", "Gemm": "", "LSTM": "", "Gather": "", "Attention": _CONTRIB, "EmbedLayerNormalization": _CONTRIB,
}  # fmt: skip
"""Operators, with their domains, for which onnxruntime has kernels on a CPU. Conv is left out, because ConvInteger is
slower there than Conv in float32 (onnxruntime issue #6732)."""


class Int8Dynamic(Method):
    """Gives weights 8 bits. Each run measures the range of an activation before it quantises the activation. No data is
    needed."""

    title = "int8 weights, activations quantised at run time"
    changes = "MatMul, Gemm, LSTM, Attention and Gather with constant weights"
    where = ", outside of branches and loop bodies"
    opset = 11

    def opset_why(self, form: Form) -> str:
        return "DynamicQuantizeLinear exists from opset 11 on"

    def layers(self, work: Work) -> list[Layer]:
        return [
            Layer(node.name or "", node.op_type, constant_bytes(node))
            for node in work.model.graph
            if _OPERATORS.get(node.op_type) == node.domain and (_has_weight(node) or is_embedding(node))
        ]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        return work.arithmetic.quantised(
            "dynamic",
            {*keep, *_lookups(work.model), *namesakes(work.model, _OPERATORS)},
            of=written_out,
            operators=list(_OPERATORS),
            per_channel=work.form.per_channel,
            reduce_range=work.form.seven_bits(),
            weights="QInt8",
        )


def _lookups(model: ir.Model) -> set[str]:
    """Returns the Gathers whose table is not constant: quantising it only for them costs time."""
    return {node.name or "" for node in model.graph if node.op_type == "Gather" and not is_embedding(node)}


def _has_weight(node: ir.Node) -> bool:
    if node.op_type == "Gather":
        return False
    return any(
        value is not None and value.const_value is not None and value.dtype == ir.DataType.FLOAT
        for value in node.inputs[1:]
    )
