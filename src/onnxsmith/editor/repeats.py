"""Compares repeats of a node set: which attributes and which outer values differ between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.editor.node_regions import Region
from onnxsmith.graph.structure import attribute_keys, tensor_keys, walk

Place = tuple[str, int, int]
"""Says where a value is read: ("node", node, operand) for an operand, or ("end", body, output) for an output of a
body."""


class Layout:
    """Holds the nodes of a region in one order, including the nodes in its bodies, and the values that each node
    reads."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.nodes: list[ir.Node] = []
        self.bodies: list[ir.Graph] = []
        for node in region.nodes:
            for one in (node, *walk.inside(node)):
                self.nodes.append(one)
                self.bodies += walk.subgraphs(one)
        self.own = set(self.nodes)
        self.keys: dict[ir.Value, Any] = {}
        for number, body in enumerate(self.bodies):
            self.keys |= {value: ("stored", number, at) for at, value in enumerate(body.initializers.values())}
            self.keys |= {value: ("input", number, at) for at, value in enumerate(body.inputs)}
        for number, node in enumerate(self.nodes):
            self.keys |= {value: ("result", number, at) for at, value in enumerate(node.outputs)}
        self.reads: dict[Place, ir.Value | None] = {}
        for number, node in enumerate(self.nodes):
            self.reads |= {("node", number, at): value for at, value in enumerate(node.inputs)}
        for number, body in enumerate(self.bodies):
            self.reads |= {("end", number, at): value for at, value in enumerate(body.outputs)}

    def outside(self) -> dict[Place, ir.Value]:
        """Returns the values from outside the region, by the place that reads them."""
        return {place: value for place, value in self.reads.items() if value is not None and value not in self.keys}

    def results(self) -> list[tuple[int, int]]:
        """Returns the results that are read outside the region or are outputs of its graph, as (node, result)."""
        top = set(self.region.nodes)
        found = []
        for number, node in enumerate(self.nodes):
            for at, value in enumerate(node.outputs if node in top else ()):
                if value.is_graph_output() or any(reader not in self.own for reader in value.consumers()):
                    found.append((number, at))
        return found


@dataclass(frozen=True, eq=False)
class Parameter:
    """Describes an attribute that differs between repeats: its name in the function, and its value in each repeat."""

    name: str
    type: ir.AttributeType
    values: tuple[ir.Attr | None, ...]


def difference(one: Layout, other: Layout) -> str:
    """Returns the first difference in structure between two regions; "" if only attributes and operands differ."""
    for a, b in zip(one.nodes, other.nodes, strict=False):
        ours, theirs = walk.node_label(a), walk.node_label(b)
        if a.op_identifier() != b.op_identifier():
            return f"{ours} is {walk.op_name(a)}, {theirs} is {walk.op_name(b)}"
        if len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
            return f"{ours} and {theirs} have different numbers of operands or results"
        for name in {*a.attributes, *b.attributes}:
            mine, its = a.attributes.get(name), b.attributes.get(name)
            held = [attribute for attribute in (mine, its) if attribute is not None]
            if len({one.type for one in held}) > 1 or (len(held) == 1 and walk.holds_subgraphs(held[0])):
                return f"the attribute {name} of {ours} and {theirs} has another type"
    if len(one.nodes) != len(other.nodes):
        return f"one has {len(one.nodes)} nodes, the other {len(other.nodes)}"
    for place in {**one.reads, **other.reads}:
        mine, its = (_source(layout, place) for layout in (one, other))
        if mine != its:
            kind, number, at = place
            reader = walk.node_label(one.nodes[number]) if kind == "node" else f"output {at} of a body"
            return f"operand {at} of {reader} comes from another node" if kind == "node" else f"{reader} differs"
    for left, right in zip(one.bodies, other.bodies, strict=True):
        stored = [[_tensor(value.const_value) for value in body.initializers.values()] for body in (left, right)]
        if len(left.inputs) != len(right.inputs) or stored[0] != stored[1]:
            return "weights or inputs of a body differ"
    return ""


def _source(layout: Layout, place: Place) -> Any:
    if place not in layout.reads:
        return "nothing there"
    value = layout.reads[place]
    return None if value is None else layout.keys.get(value, "outside")


def operands(layouts: Sequence[Layout]) -> list[tuple[list[Place], tuple[ir.Value, ...]]]:
    """Returns the values from outside. An entry has the places that read a value, and the value in each repeat. Places
    share an entry if they read the same value in every repeat."""
    outside = [layout.outside() for layout in layouts]
    found: dict[tuple[ir.Value, ...], list[Place]] = {}
    for place in outside[0]:
        found.setdefault(tuple(one[place] for one in outside), []).append(place)
    return [(places, values) for values, places in found.items()]


def parameters(layouts: Sequence[Layout]) -> dict[tuple[int, str], Parameter]:
    """Returns the attributes that become attributes of the function, by node number and name. Such attributes differ
    between repeats, or refer to an attribute of an enclosing function."""
    found: dict[tuple[int, str], Parameter] = {}
    known: dict[Any, Parameter] = {}
    taken: set[str] = set()
    for number, node in enumerate(layouts[0].nodes):
        names = dict.fromkeys(name for layout in layouts for name in layout.nodes[number].attributes)
        for name in names:
            held = tuple(layout.nodes[number].attributes.get(name) for layout in layouts)
            first = next(one for one in held if one is not None)
            keys = tuple(None if one is None else attribute_keys.exact(one) for one in held)
            is_ref = any(one is not None and one.is_ref() for one in held)
            if walk.holds_subgraphs(first) or (len(set(keys)) == 1 and not is_ref):
                continue
            if (name, keys) not in known:
                wishes = (name, f"{node.op_type.lower()}_{name}")
                count = sum(one.startswith(wishes[1]) for one in taken) + 1
                free = next((wish for wish in wishes if wish not in taken), f"{wishes[1]}_{count}")
                taken.add(free)
                known[name, keys] = Parameter(free, first.type, held)
            found[number, name] = known[name, keys]
    return found


def _tensor(tensor: ir.TensorProtocol | None) -> Any:
    return None if tensor is None else tensor_keys.with_strings(tensor)
