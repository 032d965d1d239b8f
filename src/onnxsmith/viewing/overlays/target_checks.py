"""What each target says of the nodes, out of `check`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.report.parts.target_checks import TargetChecks
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying


class Targets(Overlaying):
    """A layer for each target that names nodes: those that stopped it, and those of which nothing is known."""

    def layers(self, part: TargetChecks, names: Names) -> Iterator[Layer]:
        for check in part.checks:
            stages = list(dict.fromkeys(one.stage.value for one in check.nodes))
            layer = Layer(check.title or check.target, scale="classes", classes=stages)
            for one in check.nodes:
                said = "; ".join(
                    text for text in (one.why, f"what helps: {one.rewrite}" if one.rewrite else "") if text
                )
                for node in names.node(one.node):
                    layer.figures[node] = stages.index(one.stage.value), f"{one.stage.value}: {said}"
            yield layer
