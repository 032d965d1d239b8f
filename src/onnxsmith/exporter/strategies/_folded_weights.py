"""Gives weights that torch's exporter folded the dtype of the operator that reads them.

Its optimiser multiplies a bfloat16 weight of a Conv with the scale of a normalisation in float32, and stores the
float32 product, which no runtime takes beside a bfloat16 input.
"""

from __future__ import annotations

import onnx_ir as ir

_LINEAR = ("Conv", "ConvTranspose", "Gemm")
_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def retyped_weights(model: ir.Model) -> None:
    """Rounds float32 weights and biases to the narrow dtype that the operator's input or result has."""
    for node in model.graph:
        if node.op_type not in _LINEAR or node.domain not in ("", "ai.onnx"):
            continue
        dtypes = {value.dtype for value in (node.inputs[0], node.outputs[0]) if value is not None}
        narrow = next((dtype for dtype in _NARROW if dtype in dtypes), None)
        if narrow is None:
            continue
        for value in node.inputs[1:]:
            held = None if value is None else value.const_value
            if value is None or held is None or held.dtype != ir.DataType.FLOAT:
                continue
            if any(use.node.op_type not in _LINEAR for use in value.uses()):
                continue
            value.const_value = ir.tensor(held.numpy().astype(narrow.numpy()), dtype=narrow, name=held.name)
            value.type = ir.TensorType(narrow)
