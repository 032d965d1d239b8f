"""Holds the names of a graph to each other: every input is made before it is used, and made once.

`onnx.checker` stops at the first such fault with a sentence about a node; the reader of onnx-ir accepts some of them.
Here each is told apart, because they are mended differently: a name that nobody makes, nodes out of order, a cycle, a
name made twice. Rules from the ONNX IR specification, "Graphs" and "Names Within a Graph".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx

from onnxsmith.problem import OnnxsmithError, problem


def check(proto: onnx.ModelProto, where: str) -> None:
    """Raises the first structural problem of the graph, its subgraphs and its functions."""
    _refuse_what_would_be_lost(proto, where)
    _check_graph(proto.graph, set(), where)
    for function in proto.functions:
        place = f"{where}, function {function.domain}::{function.name}"
        _check_nodes(function.node, set(function.input), set(), place)
        _check_outputs(function.output, _made(function.node) | set(function.input), place)


def _refuse_what_would_be_lost(proto: onnx.ModelProto, where: str) -> None:
    """The graph library does not carry these fields; dropping them in silence would change the model."""
    lost = []
    if proto.training_info:
        lost.append("training_info")
    if any(graph.sparse_initializer for graph in _graphs(proto.graph)):
        lost.append("sparse_initializer")
    if lost:
        raise problem(
            "model/not-carried",
            f"the model has {' and '.join(lost)}, which cannot be kept yet",
            where=where,
            why="going on would drop it without a word",
            fix="remove it, or turn sparse initializers into dense ones",
        )


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes: branches and loop bodies."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def _check_graph(graph: onnx.GraphProto, outer: set[str], where: str) -> None:
    place = f"{where}, graph {graph.name!r}" if graph.name else where
    inputs = [value.name for value in graph.input]
    initializers = [tensor.name for tensor in graph.initializer]
    for names, what in ((inputs, "graph input"), (initializers, "initializer")):
        _refuse_twice(names, what, place)
    if "" in inputs or "" in initializers:
        raise problem("model/unnamed", "an input or initializer of the graph has no name", where=place)
    outputs = [value.name for value in graph.output]
    if not graph.node and not outputs:
        raise problem(
            "model/no-graph",
            "the graph has no nodes and no outputs",
            where=place,
            why="there is nothing that could run",
            fix="export the model again",
        )
    own = set(inputs) | set(initializers)
    _check_nodes(graph.node, own, outer, place)
    _check_outputs(outputs, own | _made(graph.node) | outer, place)


def _made(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output if name}


def _refuse_twice(names: Sequence[str], what: str, place: str) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _made_twice(name, f"as {what}", place)
        seen.add(name)


def _made_twice(name: str, how: str, place: str) -> OnnxsmithError:
    return problem(
        "model/duplicate-name",
        f"{name!r} is defined twice ({how})",
        where=place,
        why="in one graph every name has one definition (static single assignment)",
        fix="rename one of the two",
    )


def _check_nodes(nodes: Sequence[onnx.NodeProto], own: set[str], outer: set[str], place: str) -> None:
    known = set(own)
    made = _made(nodes)
    for node in nodes:
        for name in node.input:
            if name and name not in known and name not in outer:
                raise _not_there_yet(name, node, nodes, made, place)
        visible: set[str] | None = None
        for inner in subgraphs(node):
            visible = visible if visible is not None else outer | known
            _check_graph(inner, visible, place)
        for name in node.output:
            if name in known:
                raise _made_twice(name, f"again by {describe(node)}", place)
            if name:
                known.add(name)


def _check_outputs(names: Iterable[str], known: set[str], place: str) -> None:
    for name in names:
        if name not in known:
            raise problem(
                "model/undefined-output",
                f"nothing makes the graph output {name!r}",
                where=place,
                fix="export the model again, or remove the output",
            )


def describe(node: onnx.NodeProto) -> str:
    """A node as a reader would look for it: operator, name or first output."""
    name = node.name or next((f"-> {output}" for output in node.output if output), "without a name")
    return f"{node.domain + '::' if node.domain else ''}{node.op_type} {name}"


def _not_there_yet(
    name: str, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto], made: set[str], place: str
) -> OnnxsmithError:
    where = f"{place}, node {describe(node)}"
    if name not in made:
        return problem(
            "model/undefined-input",
            f"{describe(node)} reads {name!r}, which nothing makes",
            where=where,
            why="no node, initializer or graph input has that name",
            fix="export the model again; a weights file that was left out looks like this too",
        )
    cycle = _find_cycle(nodes)
    if cycle:
        return problem(
            "model/cyclic",
            f"the graph has a cycle through {len(cycle)} nodes",
            where=place,
            why=" → ".join([*cycle[:6], "…"] if len(cycle) > 6 else [*cycle, cycle[0]]),
            fix="one of these nodes must not depend on the others: undo the edit that joined them",
        )
    return problem(
        "model/unsorted",
        f"{describe(node)} comes before the node that makes its input {name!r}",
        where=where,
        why="the nodes of a graph must be in an order in which they can run",
        fix="sort it: `python -c \"import onnx, onnx_ir as ir; m = ir.load('in.onnx'); m.graph.sort(); ir.save(m, 'out.onnx')\"`",
    )


def _find_cycle(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Nodes of one cycle, in order, or nothing. Peels off what can run; what is left over contains a cycle."""
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{maker[n] for n in _reads(node) if n in maker} for node in nodes]
    users: dict[int, list[int]] = {}
    for index, sources in enumerate(needs):
        for source in sources:
            users.setdefault(source, []).append(index)
    waiting = [len(sources) for sources in needs]
    ready = [index for index, count in enumerate(waiting) if count == 0]
    left = set(range(len(nodes)))
    while ready:
        index = ready.pop()
        left.discard(index)
        for user in users.get(index, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    if not left:
        return []
    path: list[int] = []
    seen: dict[int, int] = {}
    at = min(left)
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = min(source for source in needs[at] if source in left)
    return [describe(nodes[index]) for index in reversed(path[seen[at] :])]


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, what its subgraphs capture included."""
    yield from node.input
    for inner in subgraphs(node):
        own = {v.name for v in inner.input} | {t.name for t in inner.initializer} | _made(inner.node)
        for inner_node in inner.node:
            yield from (name for name in _reads(inner_node) if name not in own)
        yield from (v.name for v in inner.output if v.name not in own)
