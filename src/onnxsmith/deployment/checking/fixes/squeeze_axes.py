"""Names the axes of a Squeeze that removes all axes of size 1."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._shaped_copy import Places
from onnxsmith.deployment.checking.fixes.base import Fix


class SqueezeAxes(Fix):
    """Without axes the rank of the result depends on the sizes, which a compiler cannot know. The rewrite needs to know
    for every axis whether its size is 1.

    Refused:
    1. A size is symbolic: Squeeze removes its axis only at size 1.
    """

    rank = 12

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        for node in places.nodes("Squeeze"):
            given = len(node.inputs) > 1 and node.inputs[1] is not None
            shape = node.inputs[0].shape if node.inputs[0] is not None else None
            if given or "axes" in node.attributes or shape is None or not shape.is_static():
                continue
            axes = [axis for axis, size in enumerate(shape) if size == 1]
            if places.opset < 13:
                node.attributes["axes"] = ir.AttrInt64s("axes", axes)
            else:
                node.resize_inputs(2)
                node.replace_input_with(1, places.inserter(node).constant(axes))
            places.changed += 1
        if places.changed:
            yield "Squeeze names its axes", places.model
