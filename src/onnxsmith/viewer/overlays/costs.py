"""Multiply-adds, weights and memory of nodes, by `inspect --costs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.parts.costs import CostRow, Costs
from onnxsmith.viewer.inspection.costs.by_node import NodeCost, by_node
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying


@dataclass(frozen=True)
class _Kind:
    """One cost: of a row of the report, and of a node."""

    title: str
    unit: str
    of_row: Callable[[CostRow], int]
    of_node: Callable[[NodeCost], int]


_KINDS = (
    _Kind("multiply-adds", "MACs", lambda row: row.macs.at, lambda one: one.macs),
    _Kind("activations", "bytes", lambda row: row.activations.at, lambda one: one.activations),
    _Kind("weights", "bytes", lambda row: row.weight_bytes, lambda one: one.weight_bytes),
)


class ModuleCosts(Overlaying):
    """The report has figures of modules. Those of their nodes are counted in the model, at the sizes of the report;
    they are shown where their sum is what the report says of the module. Elsewhere no node gets a figure: the report
    may be of another version of the model, or the module may call functions."""

    def layers(self, part: Costs, names: Names) -> Iterator[Layer]:
        costs = by_node(names.source, part.sizes) if names.source is not None else {}
        groups: dict[str, list[int]] = {}
        numbered: dict[int, NodeCost] = {}
        for node, cost in costs.items():
            number = names.number(node)
            if number is not None:
                numbered[number] = cost
                groups.setdefault(cost.group, []).append(number)
        for row in part.rows:
            if part.by == "operator":
                names.group(row.name, groups.get(row.name, []))
            else:
                names.module(row.name)
        for kind in _KINDS:
            yield _layer(kind, part.rows, groups, numbered)


def _layer(
    kind: _Kind, rows: Sequence[CostRow], groups: Mapping[str, list[int]], costs: Mapping[int, NodeCost]
) -> Layer:
    layer = Layer(kind.title, kind.unit)
    for at, row in enumerate(rows):
        own = kind.of_row(row)
        for inner in rows[at + 1 :]:
            if inner.depth <= row.depth:
                break
            own -= kind.of_row(inner) if inner.depth == row.depth + 1 else 0
        nodes = groups.get(row.name, ())
        if sum(kind.of_node(costs[node]) for node in nodes) != own:
            continue
        for node in nodes:
            value = kind.of_node(costs[node])
            if value:
                around = f"; {row.name} has {kind.of_row(row):,} in all" if row.name else ""
                layer.figures[node] = value, f"{value:,} {kind.unit}{around}"
    return layer
