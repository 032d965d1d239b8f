"""What `quantize` made narrow, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts._text import size
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure


class LayerPrecision(Overlaying):
    """The precision of each layer, and its error if it alone is narrow."""

    made = "quantize simplifies a copy first, and the file does not have the new nodes of that copy"

    def remarks(self, part: Quantisation) -> Iterator[str]:
        if not part.layers:
            yield f"no layer could become {part.to}: {part.summary()}"

    def layers(self, part: Quantisation, names: Names) -> Iterator[Layer]:
        kind = Layer("precision", scale="classes", classes=[part.to, "weights alone", "stays as it was"])
        damage = Layer(f"error in {part.to}, alone")
        for one in part.layers:
            for node in names.node(one.name):
                said = f"{part.to}, {size(one.nbytes)} of weights"
                said = f"{said}, but not the activations: {one.weights}" if one.weights else said
                said = f"stays as it was: {one.kept}" if one.kept else said
                kind.figures[node] = 2 if one.kept else 1 if one.weights else 0, said
                if one.damage is not None:
                    damage.figures[node] = figure(one.damage), f"{one.damage:.2g} of the size of its result; {said}"
        yield kind
        yield damage
