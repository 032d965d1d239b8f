"""The error of each tensor, out of `compare --per-layer`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure

_VERDICTS = (
    "equal", "rounding", "computed otherwise", "inherited", "own error, slight", "own error, not followed", "own error",
)  # fmt: skip


class Errors(Overlaying):
    """Own and inherited error, relative to the tensor's scale, and what the comparison made of it. The names are
    those of the candidate."""

    newer = True

    def subject(self, part: Layers) -> str:
        return part.candidate

    def layers(self, part: Layers, names: Names) -> Iterator[Layer]:
        inherited = Layer("error from the inputs on")
        own = Layer("error of the node itself")
        verdict = Layer("verdict of the comparison", scale="classes", classes=list(_VERDICTS))
        for one in part.layers:
            nodes = names.maker(one.name)
            for node in nodes:
                said = (
                    f"{one.name}: {one.verdict}, {one.inherited:.2g} of its scale; rounding explains {one.allowed:.2g}"
                )
                inherited.figures[node] = figure(one.inherited), said
                if one.own is not None:
                    own.figures[node] = figure(one.own), f"{one.name}: {one.own:.2g} of its scale by itself"
                if one.verdict in _VERDICTS:
                    verdict.figures[node] = _VERDICTS.index(one.verdict), said
        yield inherited
        yield own
        yield verdict
