"""What each target says of the nodes, out of `check`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck, TargetChecks
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying

_TAKEN = (Stage.FITS, Stage.PARSED, Stage.BUILT, Stage.RAN, Stage.AGREED)


class Targets(Overlaying):
    """A layer for each target, those that refuse the model first: the nodes that stopped it, and those of which nothing
    is known. The other nodes are as far as the model, if the target took it."""

    def remarks(self, part: TargetChecks) -> Iterator[str]:
        for check in part.checks:
            helps = f"; what helps: {check.rewrite}" if check.rewrite else ""
            why = f": {check.why}" if check.why else ""
            if check.stage is Stage.REFUSED and (check.whole or not check.nodes):
                yield f"{_title(check)} refuses the whole model{why}{helps}"
            elif check.stage is Stage.NOT_TRIED and not check.nodes:
                yield f"{_title(check)} was not tried{why}"
            elif check.changed:
                took = f"{check.stage.value} {check.changed}"
                yield f"{_title(check)} refuses the file as it is: {check.as_it_is}; {took}"
            elif check.symbols:
                yield f"{_title(check)} takes fixed sizes only; with dynamic shapes: {check.symbols}"

    def layers(self, part: TargetChecks, names: Names) -> Iterator[Layer]:
        for check in sorted(part.checks, key=lambda one: one.stage in _TAKEN):  # what is refused is looked at first
            taken = [check.stage.value] if check.stage in _TAKEN else []
            stages = list(dict.fromkeys([*taken, *(one.stage.value for one in check.nodes)]))
            layer = Layer(_title(check), scale="classes", classes=stages)
            for node in names.every() if taken else ():
                layer.figures[node] = 0, check.stage.value
            for one in check.nodes:
                said = "; ".join(
                    text for text in (one.why, f"what helps: {one.rewrite}" if one.rewrite else "") if text
                )
                for node in names.node_or_maker(one.node):
                    layer.figures[node] = stages.index(one.stage.value), f"{one.stage.value}: {said}"
            yield layer


def _title(check: TargetCheck) -> str:
    return check.title or check.target
