"""Multiply-adds, weights and memory by torch module, out of `inspect --costs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnxsmith.report.parts.costs import CostRow, Costs
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying
from onnxsmith.words import several


class ModuleCosts(Overlaying):
    """The costs of a module are divided among its nodes, because the report has no figures for nodes."""

    def layers(self, part: Costs, names: Names) -> Iterator[Layer]:
        rows = part.rows
        nodes = [names.module(row.name) for row in rows]
        yield _divided("multiply-adds", "MACs", rows, nodes, lambda row: row.macs.at)
        yield _divided("activations", "bytes", rows, nodes, lambda row: row.activations.at)
        yield _divided("weights", "bytes", rows, nodes, lambda row: row.weight_bytes)


def _divided(
    title: str, unit: str, rows: Sequence[CostRow], nodes: Sequence[list[int]], of: Callable[[CostRow], int]
) -> Layer:
    layer = Layer(f"{title} by module", unit)
    for at, row in enumerate(rows):
        own = of(row)
        for inner in rows[at + 1 :]:
            if inner.depth <= row.depth:
                break
            own -= of(inner) if inner.depth == row.depth + 1 else 0
        for node in nodes[at] if own > 0 else ():
            held = several(len(nodes[at]), "node")
            said = f"{row.name}: {own:,} {unit} in {held} of its own; {of(row):,} with the modules in it"
            layer.figures[node] = own / len(nodes[at]), said
    return layer
