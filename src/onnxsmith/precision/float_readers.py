"""Lets nodes that compute in float32 read float32 tensors. onnxruntime's quantiser lets all nodes read the rounded
ones.

A tensor that a product reads in 8 bits may have other readers that stay in float32, such as the Add of a residual
connection. If a float32 node computes the tensor, its float32 form costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir


def reconnect(model: ir.Model, narrow: Collection[str]) -> ir.Model:
    """Changes and returns the model: float32 nodes read the result of a float32 node directly, not its rounded form.
    `narrow` are the names of the nodes that compute in 8 bits.

    Not reconnected:
    1. A tensor that a node in `narrow` computes: an 8-bit kernel has no float32 result.
    2. A graph output, because its name belongs to the rounded form.
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
