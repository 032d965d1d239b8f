"""Where `simplify` rewrote something, and where it refused to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxsmith.base.report.parts.simplification import Entry, Simplification
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying


class Simplified(Overlaying):
    """The rules by the nodes that they removed and made. The simplified model has only those that were made, the model
    before only those that were removed."""

    made = "a rewrite made them, and a later one took them"

    def remarks(self, part: Simplification) -> Iterator[str]:
        if not part.fired and not part.refused:
            yield "simplify found nothing to rewrite, and refused nothing"

    def layers(self, part: Simplification, names: Names) -> Iterator[Layer]:
        yield from rewritten(part.fired, part.refused, names)


def rewritten(fired: Sequence[Entry], refused: Sequence[Entry], names: Names) -> Iterator[Layer]:
    """Yields a layer of the rewrites that were made, and one of those that were refused."""
    for title, entries in (("rewrites", fired), ("refused rewrites", refused)):
        rules = list(dict.fromkeys(entry.rule for entry in entries))
        layer = Layer(title, scale="classes", classes=rules)
        for entry in entries:
            said = f"{entry.rule}: {entry.why_not}" if entry.why_not else entry.rule
            if entry.gone or entry.made:
                said += f": {', '.join(entry.gone) or 'nothing'} → {', '.join(entry.made) or 'nothing'}"
            gone, _, _ = entry.where.partition(" = ")  # of two equal nodes, one takes the place of the other
            others = (node for name in (*entry.gone_names, *entry.made_names) for node in names.seen(name))
            for node in dict.fromkeys((*names.node_or_maker(gone), *others)):
                before = layer.figures.get(node)
                layer.figures[node] = rules.index(entry.rule), said if before is None else f"{before[1]}; {said}"
        yield layer
