"""DepthToSpace and SpaceToDepth: channels become places, or places channels."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, static
from onnxsmith.precision.pruning.operators.base import Operator, integer


class Depth(Operator):
    """All channels that make one channel go together."""

    ops = ("DepthToSpace", "SpaceToDepth")

    def link(self, node: ir.Node, links: Links) -> None:
        x, y = node.inputs[0], node.outputs[0]
        assert x is not None
        few = y if node.op_type == "DepthToSpace" else x
        many, count, size = (x if few is y else y), static(few, 1), integer(node, "blocksize", 1) ** 2
        if not links.is_live(x, 1) or count is None:
            return
        mode = node.attributes.get("mode")
        by_channel = mode is not None and mode.as_string() == "CRD"
        which = np.repeat(np.arange(count), size) if by_channel else np.tile(np.arange(count), size)
        if few is y:
            links.tie(many, 1, few, 1, None, which)
        else:
            links.tie(few, 1, many, 1, which)
