"""Checks the names in a graph: every value is defined once, and before it is read.

`onnx.checker` reports such an error only as a sentence about a node, and onnx-ir accepts some of these graphs. Here
each kind of error has its own problem, because each has its own fix: an undefined name, unsorted nodes, a cycle, a name
that is defined twice. The rules are those of the ONNX IR specification, "Graphs" and "Names Within a Graph"."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.structure import node_checks, utf8_checks
from onnxsmith.graph.structure.file_change import file_of, message_change


@dataclass(frozen=True)
class _Scope:
    """A graph around the current node: the names defined so far (`known`), and all names that its nodes make
    (`made`)."""

    nodes: Sequence[onnx.NodeProto]
    known: set[str]
    made: set[str]


def check(proto: onnx.ModelProto, where: str) -> Kinds:
    """Raises the first structural problem of the graph, its subgraphs and its functions. Returns what the nodes hold.

    Does not check the metadata of nodes; see `utf8_checks.check_metadata`.
    """
    utf8_checks.refuse_bad(proto, where)
    kinds = kinds_in(proto)
    node_checks.refuse_long(kinds.longest, where)
    _refuse_what_would_be_lost(kinds, where)
    _check_graph(proto.graph, (), where)
    _refuse_twice([(f.domain, f.name, f.overload) for f in proto.functions], "function", where)
    for function in proto.functions:
        place = f"{where}, function {function.domain}::{function.name}"
        _refuse_twice(function.input, "function input", place)
        scope = _Scope(function.node, set(function.input), _made(function.node))
        _check_nodes((scope,), place)
        _check_outputs(function.output, (scope,), place)
    return kinds


@dataclass(frozen=True)
class Kinds:
    """The special parts of a message's nodes, found in one walk. Most models have none, and need no further walks."""

    sparse: bool
    """Says whether there are sparse tensors, as attributes or as initializers."""
    devices: bool
    """Says whether a node has device configurations."""
    lost: tuple[str, ...]
    """Names the parts that neither onnx-ir nor `carried_fields.py` keeps, though a run may need them."""
    longest: str
    """Is the longest name of an operator or a domain."""


_SPARSE = (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS)
_ODD = (*_SPARSE, onnx.AttributeProto.UNDEFINED, onnx.AttributeProto.TYPE_PROTO)
_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS


def kinds_in(proto: onnx.ModelProto) -> Kinds:
    """Returns the special parts of a message's nodes, also in subgraphs and functions."""
    sparse = devices = False
    lost: dict[str, None] = {}
    longest = max((one.domain for one in proto.opset_import), key=len, default="")
    holders: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    for holder in holders:  # the list grows during the walk
        sparse = sparse or (isinstance(holder, onnx.GraphProto) and len(holder.sparse_initializer) > 0)
        for node in holder.node:
            devices = devices or len(node.device_configurations) > 0
            longest = max(longest, node.op_type, node.domain, key=len)
            for attribute in node.attribute:
                kind = attribute.type
                if kind == _GRAPH:
                    holders.append(attribute.g)
                elif kind == _GRAPHS:
                    holders += attribute.graphs
                elif kind in _ODD:
                    sparse = sparse or kind in _SPARSE
                    lost.update(dict.fromkeys(_not_carried(node, attribute)))
    return Kinds(sparse, devices, tuple(lost), longest)


def _refuse_what_would_be_lost(kinds: Kinds, where: str) -> None:
    """Raises if the model has fields that onnx-ir cannot hold: dropping them silently would change the model."""
    if kinds.lost:
        raise problem(
            "model/not-carried",
            f"the model has {' and '.join(kinds.lost)}, which onnxsmith cannot write yet",
            where=where,
            why="this part would be lost silently",
            fix="remove this part where the model is made, or make sparse tensors dense there",
        )


def _not_carried(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> Iterator[str]:
    """Yields the part of an attribute that would be lost."""
    if attribute.type == onnx.AttributeProto.SPARSE_TENSORS:
        yield "a list of sparse tensors"
    elif attribute.type == onnx.AttributeProto.SPARSE_TENSOR and not _is_sparse_constant(node, attribute):
        yield f"a sparse tensor as attribute {attribute.name!r} of {node.op_type}"
    elif attribute.type == onnx.AttributeProto.UNDEFINED and not attribute.ref_attr_name:
        yield f"an attribute without a type ({attribute.name!r})"
    elif attribute.type == onnx.AttributeProto.TYPE_PROTO and (found := _odd_type(attribute.tp)):
        yield found


def _is_sparse_constant(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> bool:
    is_constant = node.op_type == "Constant" and node.domain in ("", "ai.onnx")
    return is_constant and attribute.name == "sparse_value" and not attribute.ref_attr_name


def _odd_type(type_: onnx.TypeProto) -> str:
    match type_.WhichOneof("value"):
        case "sequence_type":
            return _odd_type(type_.sequence_type.elem_type)
        case "optional_type":
            return _odd_type(type_.optional_type.elem_type)
        case "map_type":
            return "a map type as an attribute"
        case "opaque_type":
            return "an opaque type as an attribute"
    return ""


def all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yields the main graph, and every branch and loop body in it and in functions."""
    yield from _graphs(proto.graph)
    for function in proto.functions:
        for node in function.node:
            for inner in subgraphs(node):
                yield from _graphs(inner)


def all_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields every node of the main graph, of branches and loop bodies, and of functions."""
    for graph in all_graphs(proto):
        yield from graph.node
    for function in proto.functions:
        yield from function.node


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Returns the graphs in a node's attributes: branches and loop bodies."""
    found: list[onnx.GraphProto] = []  # not a generator, for speed: most nodes have no subgraphs
    for attribute in node.attribute:
        kind = attribute.type
        if kind == _GRAPH:
            found.append(attribute.g)
        elif kind == _GRAPHS:
            found += attribute.graphs
    return found


def _check_graph(graph: onnx.GraphProto, outer: tuple[_Scope, ...], where: str) -> None:
    place = f"{where}, graph {graph.name!r}" if graph.name else where
    inputs = [value.name for value in graph.input]
    initializers = [tensor.name for tensor in graph.initializer]
    initializers += [tensor.values.name for tensor in graph.sparse_initializer]
    _refuse_twice(inputs, "graph input", place)
    _refuse_twice(initializers, "initializer", place)
    if "" in inputs or "" in initializers:
        raise problem(
            "model/unnamed",
            "an input or initializer of the graph has no name",
            where=place,
            why="without a name, no node can read it and no caller can set it",
            fix="export the model again, or name it where the file is written",
        )
    outputs = [value.name for value in graph.output]
    if not graph.node and not outputs:
        raise problem(
            "model/no-graph",
            "the graph has no nodes and no outputs",
            where=place,
            why="there is nothing to run",
            fix="export the model again",
        )
    scopes = (*outer, _Scope(graph.node, {*inputs, *initializers}, _made(graph.node)))
    _check_nodes(scopes, place)
    _check_outputs(outputs, scopes, place)


def _made(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output if name}


def _refuse_twice(names: Iterable[Hashable], what: str, place: str, fix: str = "", why: str = "") -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        shown = "::".join(part for part in twice if part) if isinstance(twice, tuple) else str(twice)
        raise _made_twice(shown, f"as {what}", place, fix, why)


def _made_twice(name: str, how: str, place: str, fix: str = "", why: str = "") -> OnnxsmithError:
    return problem(
        "model/duplicate-name",
        f"{name!r} is defined twice ({how})",
        where=place,
        why=why or "in one graph every name has one definition (static single assignment)",
        fix=fix
        or "give one of the two another name where the file is made, and write that name in the nodes that read it",
    )


def _renaming(name: str, node: onnx.NodeProto, scopes: tuple[_Scope, ...], place: str) -> str:
    """Returns lines that rename the second definition in the main graph, and the operands behind it."""
    if len(scopes) > 1:
        return ""
    nodes = scopes[0].nodes
    at = next(index for index, one in enumerate(nodes) if one is node)
    taken = {text for one in nodes for text in (*one.input, *one.output)}
    free = next(f"{name}_{number}" for number in itertools.count(2) if f"{name}_{number}" not in taken)
    later = [one for one in nodes[at + 1 :] if name in one.input]
    lines = [
        f"rename what {describe(node)} makes; leave out the lines of operands that are to read the first definition:",
        "import onnx",
        f"model = onnx.load({file_of(place)!r})",
        "nodes = model.graph.node",
        f"nodes[{at}].output[{list(node.output).index(name)}] = {free!r}",
    ]
    for index, one in enumerate(nodes):
        if one in later and index > at:
            lines += [
                f"nodes[{index}].input[{position}] = {free!r}  # {describe(one)}"
                for position, text in enumerate(one.input)
                if text == name
            ]
    return "\n".join([*lines, 'onnx.save(model, "renamed.onnx")'])


def _check_nodes(scopes: tuple[_Scope, ...], place: str) -> None:
    own = scopes[-1]
    for node in own.nodes:
        for name in node.input:
            if name and name not in own.known:
                _check_reads(name, node, scopes, place)
        if len(node.attribute) > 1:
            _refuse_twice(
                [a.name for a in node.attribute],
                f"attribute of {describe(node)}",
                place,
                fix="delete one of the two where the file is made",
                why="a node has each attribute once",
            )
        if node.attribute:
            node_checks.check_bodies(node, describe(node), place)
            for inner in subgraphs(node):
                _check_graph(inner, scopes, place)
        for name in node.output:
            if name in own.known:
                raise _made_twice(name, f"again by {describe(node)}", place, _renaming(name, node, scopes, place))
            if name:
                own.known.add(name)


def _check_reads(name: str, node: onnx.NodeProto, scopes: tuple[_Scope, ...], place: str) -> None:
    """Raises if `name` is not defined before the node, in its own graph or in an outer graph."""
    for depth in reversed(range(len(scopes))):
        scope = scopes[depth]
        if name in scope.known:
            return
        if name in scope.made:
            if any(name in outer.known for outer in scopes[:depth]):
                raise _made_twice(
                    name,
                    (f"{describe(node)} reads an outer tensor of this name before its own graph computes one"),
                    place,
                )
            raise _too_early(name, node, scope.nodes, place)
    raise problem(
        "model/undefined-input",
        f"{describe(node)} reads {name!r}, which nothing makes",
        where=f"{place}, node {describe(node)}",
        why="no node, initializer or graph input has that name",
        fix=_near_names(name, scopes) or "export the model again; this also happens if weights are missing in the file",
    )


def _check_outputs(names: Iterable[str], scopes: tuple[_Scope, ...], place: str) -> None:
    for name in names:
        if name in scopes[-1].known:
            continue
        around = any(name in scope.known for scope in scopes[:-1])
        raise problem(
            "model/undefined-output",
            f"nothing makes the graph output {name!r}",
            where=place,
            why="it is a value of the outer graph, which a subgraph cannot return directly" if around else "",
            fix=f'copy it with a node of the subgraph: helper.make_node("Identity", ["{name}"], '
            f'["{name}_inside"]), and '
            f'return "{name}_inside"'
            if around
            else _near_names(name, scopes)
            or _without_output(name, place, is_main=len(scopes) == 1 and ", function " not in place),
        )


def _near_names(name: str, scopes: tuple[_Scope, ...]) -> str:
    """Returns the advice to write a similar name; nothing if no value in reach has one."""
    near = near_names(name, sorted(set().union(*(scope.known | set(scope.made) for scope in scopes))), 3)
    return f"write {', or '.join(map(repr, near))} where the file is made, or export the model again" if near else ""


def _without_output(name: str, place: str, *, is_main: bool) -> str:
    if not is_main:
        return "export the model again"
    kept = f"o = [o for o in m.graph.output if o.name != {name!r}]"
    change = message_change(place, f"{kept}; del m.graph.output[:]; m.graph.output.extend(o)")
    return f"export the model again, or remove the output: {change}"


def describe(node: onnx.NodeProto) -> str:
    """Names a node by its operator, and its name or first output."""
    name = node.name or next((f"-> {output}" for output in node.output if output), "without a name")
    return f"{node.domain + '::' if node.domain else ''}{node.op_type} {name}"


def _too_early(name: str, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto], place: str) -> OnnxsmithError:
    cycle = _find_cycle(nodes)
    if cycle:
        return problem(
            "model/cyclic",
            f"the graph has a cycle through {len(cycle)} nodes",
            where=place,
            why=" → ".join([*cycle[:6], "…"] if len(cycle) > 6 else [*cycle, cycle[0]]),
            fix="break the cycle: undo the edit that connected these nodes",
        )
    return problem(
        "model/unsorted",
        f"{describe(node)} comes before the node that makes its input {name!r}",
        where=f"{place}, node {describe(node)}",
        why="the nodes of a graph must be in an order in which they can run",
        fix=f"`onnxsmith simplify {pasted(file_of(place))} -o sorted.onnx` writes a simplified file with sorted nodes"
        if ", function " not in place
        else "put the first node behind the second",
    )


def _find_cycle(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Returns the nodes of one cycle, in order; an empty list if there is none. Removes nodes that can run: a cycle is
    in the rest."""
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
    """Yields the names that a node reads, and those that its subgraphs capture."""
    yield from node.input
    for inner in subgraphs(node):
        own = {v.name for v in inner.input} | {t.name for t in inner.initializer} | _made(inner.node)
        own |= {t.values.name for t in inner.sparse_initializer}
        for inner_node in inner.node:
            yield from (name for name in _reads(inner_node) if name not in own)
        yield from (v.name for v in inner.output if v.name not in own)
