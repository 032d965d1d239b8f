"""What each target says of the nodes, out of `check`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.report.parts.target_checks import Stage, TargetChecks
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying

_TAKEN = (Stage.FITS, Stage.PARSED, Stage.BUILT, Stage.RAN, Stage.AGREED)


class Targets(Overlaying):
    """A layer for each target: the nodes that stopped it, and those of which nothing is known. The other nodes are as
    far as the model, if the target took it."""

    def layers(self, part: TargetChecks, names: Names) -> Iterator[Layer]:
        for check in part.checks:
            taken = [check.stage.value] if check.stage in _TAKEN else []
            stages = list(dict.fromkeys([*taken, *(one.stage.value for one in check.nodes)]))
            layer = Layer(check.title or check.target, scale="classes", classes=stages)
            for node in names.every() if taken else ():
                layer.figures[node] = 0, check.stage.value
            for one in check.nodes:
                said = "; ".join(
                    text for text in (one.why, f"what helps: {one.rewrite}" if one.rewrite else "") if text
                )
                for node in names.node_or_maker(one.node):
                    layer.figures[node] = stages.index(one.stage.value), f"{one.stage.value}: {said}"
            yield layer
