"""Makes a local function of node sets that repeat, and replaces each set by a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.node_regions import Layout, Parameter, Region, difference, operands, parameters
from onnxsmith.graph.structure import captures, provenance, walk
from onnxsmith.graph.structure.fresh import unused


def refuse_unlike(layouts: Sequence[Layout]) -> None:
    """Raises if two regions differ in their structure. Attributes and operands may differ."""
    first, *others = layouts
    for other in others:
        found = difference(first, other)
        if found:
            raise problem(
                "edit/not-alike",
                f"{first.region.name} and {other.region.name} have different nodes",
                where=other.region.name,
                why=found,
                fix="select fewer of them, or make one function for each kind",
            )


def refuse_loops(region: Region, order: Sequence[ir.Node], at: Mapping[ir.Node, int]) -> bool:
    """Raises if a node outside the region reads from the region and feeds it. Returns whether any outside node between
    the region's first and last node reads from the region. `order` are the nodes of the graph, `at` their positions."""
    inside = set(region.nodes)
    later: set[ir.Value] = set()
    early = False
    for node in order[min(at[one] for one in inside) : max(at[one] for one in inside) + 1]:
        reads = [value for one in (node, *walk.inside(node)) for value in one.inputs if value is not None]
        if node not in inside and any(value in later or value.producer() in inside for value in reads):
            later.update(node.outputs)
            early = True
        between = next((value for value in reads if value in later), None) if node in inside else None
        if between is not None:
            way = between.producer()
            assert way is not None
            raise problem(
                "edit/not-convex",
                f"{walk.node_label(way)} lies between the selected nodes: it reads from one, and "
                f"{walk.node_label(node)} reads from it",
                where=region.name,
                why="all nodes of a function run in one call, so no other node can run between them",
                fix=f"select {walk.node_label(way)} as well, or fewer nodes",
            )
    return early


def outlined(
    layouts: Sequence[Layout], identifier: tuple[str, str], imports: dict[str, int], at: Mapping[ir.Node, int]
) -> ir.Function:
    """Replaces the nodes of all regions by calls, and returns the function. The regions must be alike; `at` are the
    positions of nodes in their graphs."""
    first = layouts[0]
    given = operands(layouts)
    # Every call has each result that any region needs, because a function has one list of outputs.
    results = list(dict.fromkeys(one for layout in layouts for one in layout.results()))
    results.sort()
    chosen = parameters(layouts)
    replaced: dict[ir.Value, ir.Value] = {}
    calls = []
    for index, layout in enumerate(layouts):
        call = _call(layout, [values[index] for _, values in given], results, identifier)
        for one in dict.fromkeys(chosen.values()):
            held = one.values[index]
            if held is not None:
                call.attributes[one.name] = _renamed(held, one.name)
        # Behind its last node, where all operands are computed.
        layout.region.graph.insert_after(max(layout.region.nodes, key=at.__getitem__), call)
        replaced |= _take_place(layout, call, results)
        calls.append(call)
    for call in calls:  # a call may read the result of another
        for place, value in enumerate(call.inputs):
            if value in replaced:
                call.replace_input_with(place, replaced[value])
    for layout in layouts[1:]:
        for node in layout.region.nodes:
            captures.release(node)
        layout.region.graph.remove(layout.region.nodes, safe=True)
    first.region.graph.remove(first.region.nodes)
    _keep_common_shapes(layouts)
    return _function(first, [places for places, _ in given], results, chosen, identifier, imports)


def _keep_common_shapes(layouts: Sequence[Layout]) -> None:
    """Keeps the declared shapes in bodies that all repeats share. If the shapes differ, keeps the shared rank, which a
    runtime may need for body inputs."""
    bodies = zip(*(layout.bodies for layout in layouts), strict=True)
    for alike in bodies:
        for values in zip(*(_declared(body) for body in alike), strict=True):
            shapes = [value.shape for value in values]
            if any(shape != shapes[0] for shape in shapes):
                ranks = {None if shape is None else len(shape) for shape in shapes}
                rank = ranks.pop() if len(ranks) == 1 else None
                values[0].shape = None if rank is None else ir.Shape([None] * rank)


def _declared(body: ir.Graph) -> list[ir.Value]:
    return [*body.inputs, *(value for node in body for value in node.outputs)]


def _renamed(held: ir.Attr, name: str) -> ir.Attr:
    if held.is_ref():
        return ir.RefAttr(name, held.ref_attr_name or "", held.type)
    return ir.Attr(name, held.type, held.value)


def _call(
    layout: Layout, inputs: list[ir.Value], results: Sequence[tuple[int, int]], identifier: tuple[str, str]
) -> ir.Node:
    outputs = []
    for number, at in results:
        old = layout.nodes[number].outputs[at]
        new = ir.Value(name=old.name, type=old.type, shape=old.shape, metadata_props=dict(old.metadata_props))
        new.meta.update(old.meta)
        outputs.append(new)
    call = ir.Node(*identifier, inputs, outputs=outputs, name=_label(layout.region))
    provenance.inherit([call], layout.region.nodes)
    provenance.place(call, provenance.modules_of(layout.region.nodes))
    return call


def _label(region: Region) -> str:
    return region.nodes[-1].name or f"{region.name}_call"


def _take_place(
    layout: Layout, call: ir.Node, results: Sequence[tuple[int, int]]
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Lets all readers outside the region read the call's results. Yields pairs of old and new values."""
    graph = layout.region.graph
    for (number, at), new in zip(results, call.outputs, strict=True):
        old = layout.nodes[number].outputs[at]
        for use in list(old.uses()):
            if use.node not in layout.own:
                use.node.replace_input_with(use.idx, new)
        for place, value in enumerate(graph.outputs):
            if value is old:
                graph.outputs[place] = new
        yield old, new


def _function(
    layout: Layout,
    given: Sequence[Sequence[tuple[str, int, int]]],
    results: Sequence[tuple[int, int]],
    chosen: dict[tuple[int, str], Parameter],
    identifier: tuple[str, str],
    imports: dict[str, int],
) -> ir.Function:
    inputs = []
    taken = {value.name for node in layout.nodes for value in node.outputs}
    for places in given:
        old = layout.reads[places[0]]
        assert old is not None
        wish = (old.name or "x").removeprefix(f"{layout.region.name}.")
        name = unused(wish, taken)
        taken.add(name)
        port = ir.Value(name=name)
        for kind, number, at in places:
            if kind == "node":
                layout.nodes[number].replace_input_with(at, port)
            else:
                layout.bodies[number].outputs[at] = port
        inputs.append(port)
    for (number, name), one in chosen.items():
        layout.nodes[number].attributes[name] = ir.RefAttr(name, one.name, one.type)
    for node in layout.region.nodes:
        for value in node.outputs:  # inferred at each call
            value.type = value.shape = None
            value.metadata_props.clear()
    outputs = [layout.nodes[number].outputs[at] for number, at in results]
    graph = ir.Graph(inputs, outputs, nodes=_sorted(layout), opset_imports=imports, name=identifier[1])
    declared = [ir.Attr(one.name, one.type, None) for one in dict.fromkeys(chosen.values())]
    return ir.Function(*identifier, graph=graph, attributes=declared)


def _sorted(layout: Layout) -> list[ir.Node]:
    """Returns the nodes in an order in which they can run."""
    done: dict[ir.Node, None] = {}
    waiting = list(reversed(layout.region.nodes))
    top = set(layout.region.nodes)
    while waiting:
        node = waiting[-1]
        needed = [value.producer() for one in (node, *walk.inside(node)) for value in one.inputs if value is not None]
        open_ = [one for one in needed if one in top and one not in done]
        if open_ and node not in done:
            waiting += [one for one in open_ if one is not None]
        else:
            done.setdefault(waiting.pop())
    return list(done)
