"""Says where a tensor whose channels stay comes from."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.precision.pruning.channel_links import is_weight

_MOVING = {"Cast", "Dropout", "Expand", "Identity", "Relu", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
_PASSING = {"Add", "Div", "Mul", "Sub", *_MOVING}
_MOST = 32
"""The most nodes that are followed upwards. A choice: an embedding or an input is seldom further away."""


def origin(value: ir.Value) -> str:
    """Returns a clause that names the input, the embedding or the operator from which a tensor comes."""
    said = ""
    for _ in range(_MOST):
        node = value.producer()
        if node is None:
            return "an input of the graph" if value.is_graph_input() else "a stored tensor"
        first = node.inputs[0] if node.inputs else None
        said = f"of {walk.op_name(node)} {walk.node_label(node)!r}"
        if first is not None and is_weight(first) and not node.domain:
            if node.op_type == "Gather":
                return f"an embedding: rows of {first.name!r}"
            if node.op_type in _MOVING:
                return f"made of the stored {first.name!r}"
        sources = node.inputs[:1] if node.op_type in _MOVING else node.inputs
        computed = [one for one in sources if one is not None and not is_weight(one)]
        if node.op_type not in _PASSING or node.domain or not computed:
            return said
        value = computed[0]
    return said
