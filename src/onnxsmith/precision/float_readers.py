"""Gives readers in float32 the float32 tensor, where onnxruntime's quantiser gives all readers the rounded one.

A tensor that a product reads in 8 bits may have other readers that stay in float32, such as the Add of a residual
connection. If a float32 node makes the tensor, its float32 form is there at no cost.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir


def reconnect(model: ir.Model, narrow: Collection[str]) -> ir.Model:
    """The model, changed in place: nodes that are not called in `narrow`, those that compute in 8 bits, read what a
    float32 node made, not its rounded form.

    Left alone:
    1. A tensor that a node in `narrow` makes: a kernel for 8 bits has no float32 result.
    2. A graph output, which has the name of the rounded form.
    """
    for node in model.graph:
        source = node.inputs[0] if node.op_type == "QuantizeLinear" and not node.domain else None
        if source is None or source.const_value is not None:
            continue
        maker = source.producer()
        if maker is not None and maker.name in narrow:
            continue
        for back in [use.node for use in node.outputs[0].uses() if use.node.op_type == "DequantizeLinear"]:
            for use in list(back.outputs[0].uses()):
                if use.node.name not in narrow and use.node.op_type != "QuantizeLinear":
                    use.node.replace_input_with(use.idx, source)
    return model
