"""Finds layers whose channels are not followed, because their weights are not stored."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.precision.pruning.links import is_weight, static
from onnxsmith.report.parts.pruning import FixedChannels

_AXIS = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1}
"""Operators that need a weight, with the axis of the result that has its output channels."""


def computed_weights(model: ir.Model) -> tuple[FixedChannels, ...]:
    """The layers of the main graph whose weights are computed, as by weight normalisation, or are inputs."""
    found = []
    for node in model.graph:
        weight = node.inputs[1] if node.op_type in _AXIS and not node.domain else None
        if weight is None or is_weight(weight):
            continue
        maker = weight.producer()
        how = (
            "an input of the graph"
            if maker is None
            else f"computed by {walk.op_name(maker)} {walk.node_label(maker)!r}"
        )
        count = static(node.outputs[0], _AXIS[node.op_type]) or 0
        found.append(FixedChannels((walk.node_label(node),), count, f"its weight {weight.name!r} is {how}"))
    return tuple(found)
