"""Colours nodes by measured figures: costs, times and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.item_views import Statistics
from onnxsmith.base.report.parts.layers import Values as ValuesPart
from onnxsmith.base.report.parts.measurements import KernelTime
from onnxsmith.base.report.parts.measurements import Profile as ProfilePart
from onnxsmith.base.report.parts.model_summary import CostRow
from onnxsmith.base.report.parts.model_summary import Costs as CostsPart
from onnxsmith.base.words import first_few, several
from onnxsmith.viewer.inspection.costs.cost_report import NodeCost, by_node
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure


@dataclass(frozen=True)
class _Kind:
    """Describes one kind of cost, read from a row of the report and from a node."""

    title: str
    unit: str
    of_row: Callable[[CostRow], int]
    of_node: Callable[[NodeCost], int]


_KINDS = (
    _Kind("multiply-adds", "MACs", lambda row: row.macs.at, lambda one: one.macs),
    _Kind("activations", "bytes", lambda row: row.activations.at, lambda one: one.activations),
    _Kind("weights", "bytes", lambda row: row.weight_bytes, lambda one: one.weight_bytes),
)


class Costs(Overlaying):
    """Shows multiply-adds, weights and memory of nodes, by `inspect --costs`.

    The report has figures of modules. The figures of their nodes are counted in the model, at the sizes of the report.
    The figures are shown only if their sum equals the module's figure in the report. If the sum differs, the report may
    be of another version of the model, or the module may call functions. The nodes of the module then get no figure.
    """

    def layers(self, part: CostsPart, names: Names) -> Iterator[Layer]:
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
                around = f"; the module {row.name} has {kind.of_row(row):,} in all" if row.name else ""
                layer.figures[node] = value, f"{value:,} {kind.unit}{around}"
    return layer


_MOST_KERNELS = 4
"""Limits the kernels that the text of a node names. A choice: one line."""


class Profile(Overlaying):
    """Shows the time of each node, from the profile of `bench`.

    Figures are seconds in a run. A kernel that computes several nodes, such as a Conv with an Add and a Relu, gives its
    time to the node with its own operator, here the Conv. The texts of the other nodes say where the time counts.
    """

    def subject(self, part: ProfilePart) -> str:
        return part.subject

    def remarks(self, part: ProfilePart) -> Iterator[str]:
        total = part.attributed + part.unattributed
        if part.unattributed:
            yield f"{duration(part.unattributed)} of {duration(total)} was spent in kernels whose nodes are unknown"

    def layers(self, part: ProfilePart, names: Names) -> Iterator[Layer]:
        seconds: dict[int, float] = {}
        texts: dict[int, list[str]] = {}
        others: dict[int, list[str]] = {}
        for kernel in part.kernels:
            main = _main(kernel)
            nodes = {node: name for name in kernel.nodes for node in names.node(name)}
            owners = [node for node, name in nodes.items() if name in main] or list(nodes)
            for node, name in nodes.items():
                own = kernel.seconds / len(owners) if node in owners else 0.0
                seconds[node] = seconds.get(node, 0.0) + own
                texts.setdefault(node, [])
                place = texts if node in owners else others
                place.setdefault(node, []).append(_time_said(kernel, name, [nodes[one] for one in owners]))
        layer = Layer(f"time on {part.subject}", "s")
        for node, own_texts in texts.items():
            said = [*own_texts, *others.get(node, ())]
            layer.figures[node] = seconds[node], first_few(said, _MOST_KERNELS, "; ")
        yield layer


def _main(kernel: KernelTime) -> set[str]:
    """Returns the nodes that get a kernel's time. These are the nodes with the kernel's own operator, else the nodes
    with the longest operator in its name (`MatMul` in `FusedMatMul`), else the last node, after which the kernel is
    named."""
    named = {kernel.name} & set(kernel.nodes)
    ops = [op.rpartition("::")[2] for op in kernel.computes]
    longest = max((op for op in ops if op in kernel.op), key=len, default="")
    found = {name for name, op in zip(kernel.nodes, ops, strict=False) if op == longest}
    return named & found or found or named


def _time_said(kernel: KernelTime, name: str, owners: list[str]) -> str:
    """Says how much of a kernel's time counts in the figure of a node."""
    if name not in owners:
        where = ", ".join(owners)
        return (
            f"this node is computed by the kernel {kernel.name} ({kernel.op}), whose {duration(kernel.seconds)} are "
            f"shown at {where}"
        )
    said = f"{duration(kernel.seconds)} in {kernel.name} ({kernel.op})"
    if len(owners) > 1:
        part = duration(kernel.seconds / len(owners))
        said = f"{part}, its part of {said}, which computes {several(len(owners), 'node')}"
    others = [one for one in kernel.nodes if one not in owners]
    return f"{said}, fused with {', '.join(others)}" if others else said


_CLASSES = ["finite", "infinity", "NaN"]


class Values(Overlaying):
    """Shows the ranges and NaN of the values of a run, from `dump`.

    Layers show the largest magnitude that each node computed, the spread, the share of zeros, and NaN and infinities.
    If there are NaN or infinities, their layer comes first, because the page starts with the first layer. A node with
    NaN has the magnitude NaN, which is worse than any number; a node with an infinity has an infinite magnitude.
    """

    def subject(self, part: ValuesPart) -> str:
        return part.model

    def layers(self, part: ValuesPart, names: Names) -> Iterator[Layer]:
        magnitude, spread = Layer("largest magnitude"), Layer("standard deviation")
        odd = Layer("NaN and infinity", scale="classes", classes=_CLASSES)
        for row in part.rows:
            seen = row.statistics
            if seen is None or "input" in row.roles:
                continue
            for node in names.maker(row.name):
                said = _value_said(row.name, seen)
                if seen.std is not None:
                    spread.figures[node] = figure(seen.std), said
                largest = _largest(seen)
                if largest is not None:
                    magnitude.figures[node] = figure(largest), said
                odd.figures[node] = 2 if seen.nan else 1 if seen.inf else 0, said
        found = any(value for value, _ in odd.figures.values())
        yield from (odd, magnitude, spread) if found else (magnitude, spread, odd)


def _largest(seen: Statistics) -> float | int | None:
    if seen.nan:
        return math.nan
    if seen.inf:
        return math.inf
    return None if seen.min is None or seen.max is None else max(abs(seen.min), abs(seen.max))


def _value_said(name: str, seen: Statistics) -> str:
    if seen.min is None or seen.max is None:
        return f"{name}: no finite value, {seen.oddities()}" if seen.oddities() else f"{name}: no elements"
    said = f"{name}: {seen.min} to {seen.max}"
    if seen.std is not None:
        said += f", mean {seen.mean:.3g}, standard deviation {seen.std:.3g}"
    return f"{said}, {seen.oddities()}" if seen.oddities() else said
