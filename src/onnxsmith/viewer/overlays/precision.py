"""The nodes that stay in float32, out of `bisect`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.precision import Precision
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure


class KeptNodes(Overlaying):
    """Which nodes stay, and their own error in the narrow dtype."""

    def remarks(self, part: Precision) -> Iterator[str]:
        if not part.kept:
            yield f"no node has to stay in float32: {part.summary()}"

    def layers(self, part: Precision, names: Names) -> Iterator[Layer]:
        kept = Layer("stays in float32", scale="classes", classes=["stays in float32"])
        own = Layer(f"error in {part.to}")
        for one in part.kept:
            for node in names.node(one.name):
                kept.figures[node] = 0, f"{one.why}; range {one.range}" if one.range else one.why
                if one.own is not None:
                    own.figures[node] = figure(one.own), f"{one.own:.2g} of the scale of its result, in {part.to}"
        yield kept
        yield own
