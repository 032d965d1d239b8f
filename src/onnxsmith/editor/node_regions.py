"""Finds sets of nodes that a step treats as a whole, compares their repeats, and leaves out shared results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.node_selectors import fits
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.structure import attribute_keys, provenance, tensor_keys, tensor_paths, walk
from onnxsmith.verification.random_draws import draws


@dataclass(frozen=True)
class Region:
    """Holds a set of nodes in one graph, with a name for messages. The nodes are in an order that repeats of the region
    share. The region includes the nodes of branches and bodies."""

    name: str
    nodes: tuple[ir.Node, ...]
    graph: ir.Graph


def of_nodes(nodes: Iterable[ir.Node], name: str) -> Region:
    """Returns one region of nodes, in the order of their graph.

    Raises:
        OnnxsmithError: `edit/out-of-scope` if the nodes are in several graphs.
    """
    given = list(nodes)
    inner = {one for node in given for one in walk.inside(node)}
    outer = [node for node in given if node not in inner]
    graph = graph_of(outer[0])
    strange = next((node for node in outer if graph_of(node) is not graph), None)
    if strange is not None:
        raise problem(
            "edit/out-of-scope",
            f"{walk.node_label(strange)} is in another graph than {walk.node_label(outer[0])}",
            where=name,
            why="the nodes of a function come from one graph, body or branch",
            fix="select nodes of one graph; the nodes of their branches and bodies are then included",
        )
    chosen = set(outer)
    return Region(name, tuple(node for node in graph if node in chosen), graph)


def of_matches(matches: Iterable[Match]) -> list[Region]:
    """Returns a region for each match of a pattern, with its nodes in the order of the pattern.

    Raises:
        OnnxsmithError: `edit/out-of-scope` if a match reaches into an outer graph.
    """
    found = []
    for match in matches:
        nodes = tuple(dict.fromkeys(node for node in match.nodes if node is not None))
        of_nodes(nodes, walk.node_label(match.node))  # raises unless all are in one graph
        found.append(Region(walk.node_label(match.node), nodes, graph_of(match.node)))
    return found


def of_modules(work: Work, path: str) -> list[Region]:
    """Returns a region for each torch module whose path fits `path`. `layers.*` gives `layers.0` and `layers.1`, each
    with its submodules.

    Raises:
        OnnxsmithError: `edit/no-match` if no node comes from such a module; `edit/out-of-scope`.
    """
    depth = path.count(".") + 1
    groups: dict[str, list[ir.Node]] = {}
    modules: dict[str, None] = {}
    for node in walk.all_nodes(work.model):
        module = provenance.of(node).module
        modules.setdefault(module)
        head = ".".join(module.split(".")[:depth])
        if head and head.count(".") == depth - 1 and fits(head, path):
            groups.setdefault(head, []).append(node)
    if not groups:
        near = tensor_paths.near(path, [module for module in modules if module])
        raise problem(
            "edit/no-match",
            f"no node comes from a torch module that matches {path!r}",
            why="a path is a name from named_modules()" if any(modules) else "the file names no torch modules",
            fix=f"the nearest: {', '.join(near)}" if near else "select the nodes by name or by a pattern",
        )
    return [of_nodes(nodes, name) for name, nodes in groups.items()]


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
                return f"the attribute {name} has different types in {ours} and {theirs}"
    if len(one.nodes) != len(other.nodes):
        return f"one part has {len(one.nodes)} nodes, but the other has {len(other.nodes)}"
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


_MOST = 8
"""Limits the nodes that are copied so that a node can leave its region. A choice: a shape needs a few, a module
many."""


def without_shared(work: Work, regions: Sequence[Region]) -> list[Region]:
    """Returns the regions without nodes that other regions read, if such nodes need few other nodes. Such a node leaves
    its region, but stays in the graph. Nodes that only it needs stay with it, and other nodes that it needs are
    copied."""
    home = {node: number for number, region in enumerate(regions) for node in region.nodes}
    order = {node: at for at, node in enumerate(walk.all_nodes(work.model))}
    found = []
    for number, region in enumerate(regions):
        kept = list(region.nodes)
        for node in region.nodes:
            readers = {home.get(reader) for value in node.outputs for reader in value.consumers()} - {None}
            # A module's own result goes only to the next module; no node of the module itself reads it.
            if number not in readers or len(readers) <= min(2, len(regions) - 1):
                continue
            needed = sorted(_needed(node, set(kept)), key=order.__getitem__)
            if len(needed) <= _MOST and not any(map(_is_odd, (node, *needed))):
                alone = [node, *_needed_by_no_other(node, needed)]
                _stand_alone(work, alone, [one for one in needed if one not in alone])
                for one in alone:
                    kept.remove(one)
                    del home[one]
        found.append(replace(region, nodes=tuple(kept)))
    return [region for region in found if region.nodes]


def _needed(node: ir.Node, among: set[ir.Node]) -> list[ir.Node]:
    """Returns the nodes of the region that a node needs. The search stops once there are too many nodes to copy."""
    found: dict[ir.Node, None] = {}
    waiting = [node]
    while waiting and len(found) <= _MOST:
        for value in waiting.pop().inputs:
            maker = value.producer() if value is not None else None
            if maker is not None and maker in among and maker not in found:
                found[maker] = None
                waiting.append(maker)
    return list(found)


def _needed_by_no_other(node: ir.Node, needed: Sequence[ir.Node]) -> list[ir.Node]:
    """Returns the needed nodes whose results are read only by the node and by one another. `needed` is in the order of
    the graph."""
    found: dict[ir.Node, None] = {node: None}
    for one in reversed(needed):
        if not any(value.is_graph_output() or set(value.consumers()) - set(found) for value in one.outputs):
            found[one] = None
    return list(found)[1:]


def _is_odd(node: ir.Node) -> bool:
    return draws(node) or walk.has_subgraphs(node)


def _stand_alone(work: Work, nodes: Sequence[ir.Node], needed: Sequence[ir.Node]) -> None:
    """Lets the nodes read copies of the nodes that they need."""
    names = work.names
    copies: dict[ir.Value, ir.Value] = {}
    for one in needed:
        results = []
        for value in one.outputs:
            new = ir.Value(name=names.free(f"{value.name}_shared"), type=value.type, shape=value.shape)
            copies[value] = new
            results.append(new)
        inputs = [copies.get(value, value) if value is not None else None for value in one.inputs]
        made = ir.Node(
            one.domain, one.op_type, inputs, list(one.attributes.values()), overload=one.overload, outputs=results
        )
        made.metadata_props.update(one.metadata_props)
        graph_of(one).insert_after(one, made)
    for node in nodes:
        for place, operand in enumerate(node.inputs):
            if operand is not None and operand in copies:
                node.replace_input_with(place, copies[operand])
