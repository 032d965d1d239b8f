"""Numbers for the computation of a node, and for the use of its results.

Equal numbers of a forward walk mean the same computation; equal numbers of a backward walk mean the same use. Both
walks begin at values that are known to be pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import onnx_ir as ir

from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import OUTPUT, View, trimmed
from onnxsmith.graph.structure import captures, walk

Values = dict[ir.Value, int]
Nodes = dict[ir.Node, int]


def forward(view: View, seeds: Mapping[ir.Value, int], level: Level) -> tuple[Values, Nodes]:
    """Returns numbers for the computation of each value and node from the values in `seeds`."""
    values: Values = dict(seeds)
    return values, _forward(view, view.graph, values, level)


def _forward(view: View, graph: ir.Graph, values: Values, level: Level) -> Nodes:
    numbers = view.side.numbers
    found: Nodes = {}
    for node in graph:
        if node.outputs and all(view.is_stored(value) for value in node.outputs):
            continue
        found[node] = number = numbers.of(("node", view.own(node, level), _reads(view, node, values, level)))
        for position, value in enumerate(node.outputs):
            passed = _passed_on(view, node, values, level)
            values.setdefault(value, numbers.of(("result", number, position)) if passed is None else passed)
    return found


def _passed_on(view: View, node: ir.Node, values: Values, level: Level) -> int | None:
    """Returns the number of an `Identity`'s result, which is that of its operand; None for other nodes."""
    read = node.inputs[0] if node.op_type == "Identity" and not node.domain and len(node.inputs) == 1 else None
    if read is None or not (view.is_stored(read) or read in values):
        return None
    return _number(view, read, values, level)


def _reads(view: View, node: ir.Node, values: Values, level: Level) -> Hashable:
    reads: list[Hashable] = []
    for position, value in enumerate(trimmed(node)):
        if value is None:
            number = -1
        elif view.is_stored(value):
            if level is Level.BARE:
                continue  # another version of the operator may have an attribute for it
            number = view.side.constants.number(value, level)
        else:
            number = values.get(value, -2)
        reads.append((0 if view.commutes(node) else position, number))
    if view.commutes(node):
        reads.sort(key=lambda item: item[1])  # type: ignore[index]
    return tuple(reads), _bodies(view, node, values, level)


def _bodies(view: View, node: ir.Node, values: Values, level: Level) -> Hashable:
    found: list[Hashable] = []
    if not node.attributes:
        return ()
    for name, graph in walk.named_subgraphs(node):
        inner = dict(_captured(view, node, values))
        for position, value in enumerate(graph.inputs):
            inner[value] = view.side.numbers.of(("body input", position))
        nodes = _forward(view, graph, inner, level)
        results = tuple(_number(view, value, inner, level) for value in graph.outputs)
        found.append((name, results, tuple(sorted(nodes.values()))))
    return tuple(found)


def _captured(view: View, node: ir.Node, values: Values) -> Values:
    """Returns the numbers of the outer values that a node's bodies read."""
    known = view.captured.get(node) or captures.captured(node)
    return {value: values[value] for value in known if value in values}


def _number(view: View, value: ir.Value, values: Values, level: Level) -> int:
    if view.is_stored(value):
        return view.side.constants.number(value, level)
    return values.get(value, -2)


def backward(
    view: View, seeds: Mapping[ir.Node, int], outputs: Mapping[ir.Value, Hashable], level: Level
) -> tuple[Values, Nodes]:
    """Returns numbers for the use of each value and node, up to the nodes in `seeds` and the outputs of the graph."""
    numbers = view.side.numbers
    values: Values = {}
    found: Nodes = dict(seeds)
    for node in reversed(view.nodes):
        used = tuple(_use(view, value, found, values, outputs) for value in node.outputs)
        if node not in found:
            found[node] = numbers.of(("used", view.own(node, level), _own_reads(view, node, level), used))
    for value in view.graph.inputs:
        _use(view, value, found, values, outputs)
    return values, found


def _use(view: View, value: ir.Value, nodes: Nodes, values: Values, outputs: Mapping[ir.Value, Hashable]) -> int:
    uses: list[Hashable] = [
        (nodes.get(reader, -2), str(view.slot(reader, slot))) for reader, slot in view.readers.get(value, ())
    ]
    if value in view.results:
        uses.append((OUTPUT, str(outputs.get(value, ""))))
    values[value] = view.side.numbers.of(("uses", tuple(sorted(uses, key=str))))
    return values[value]


def _own_reads(view: View, node: ir.Node, level: Level) -> Hashable:
    """Returns a key of the constants that a node reads. For other operands only their presence counts."""
    reads: list[Hashable] = []
    for position, value in enumerate(trimmed(node)):
        if value is not None and view.is_stored(value):
            if level is not Level.BARE:
                reads.append((view.slot(node, position), view.side.constants.number(value, level)))
        else:
            reads.append((view.slot(node, position), value is None))
    if view.commutes(node):
        reads.sort(key=str)
    bodies: Hashable = () if level is Level.BARE else _bodies(view, node, {}, level)
    return (tuple(reads), len(view.captured.get(node, ())), bodies)
