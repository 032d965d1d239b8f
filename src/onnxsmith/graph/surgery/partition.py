"""Divides the nodes of a main graph into pieces, and makes a model from each piece.

A piece reads graph inputs and tensors of earlier pieces. Only tensors of known rank are passed between pieces: few
runtimes accept lists, optionals and maps as inputs, and the specification requires the shape of a graph input.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.model_copy import cloned

Nodes = list[ir.Node]


@dataclass(frozen=True)
class Piece:
    """A model of one piece, and how many nodes it has. `sources` maps each input to the piece that computes it, None
    for a graph input."""

    model: ir.Model
    nodes: int
    sources: dict[str, int | None]


def computing(graph: ir.Graph) -> Nodes:
    """Returns the nodes to divide, in order: all but constants, which go to the pieces that read them."""
    return [node for node in graph if not _is_constant(node)]


def in_ranges(graph: ir.Graph, count: int, *, by_nodes: bool) -> list[Nodes]:
    """Divides the nodes into up to `count` runs of consecutive nodes with about the same bytes of weights, or the same
    number of nodes. Makes fewer pieces if too many values may not be passed between pieces."""
    groups = inseparable(graph)
    nodes = [node for group in groups for node in group]
    costs = [1] * len(nodes) if by_nodes else _weights(nodes)
    if not any(costs):
        costs = [1] * len(nodes)
    done = [0, *accumulate(costs)]
    free = list(accumulate(map(len, groups)))[:-1]
    places: list[int] = []
    for number in range(1, count):
        behind = [place for place in free if not places or place > places[-1]]
        if not behind:
            break
        wish = done[-1] * number / count
        places.append(min(behind, key=lambda place: abs(done[place] - wish)))
    ends = [*places, len(nodes)]
    return [nodes[start:end] for start, end in zip([0, *places], ends, strict=True)]


def at_tensors(graph: ir.Graph, tensors: Sequence[ir.Value]) -> list[Nodes]:
    """Divides the nodes at tensors. Each piece computes the next of these tensors, the last piece all other nodes.
    Tensors of the same nodes end the same piece."""
    order = {node: at for at, node in enumerate(graph)}
    ancestors = [(value, _behind(value, graph)) for value in tensors]
    ancestors.sort(key=lambda item: len(item[1]))
    pieces: list[Nodes] = []
    taken: set[ir.Node] = set()
    for _, found in ancestors:
        mine = found - taken
        taken |= mine
        pieces.append(sorted((node for node in mine if not _is_constant(node)), key=order.__getitem__))
    pieces.append([node for node in computing(graph) if node not in taken])
    return [piece for piece in pieces if piece]


def inseparable(graph: ir.Graph) -> list[Nodes]:
    """Returns the smallest pieces, each of one node if possible, in an order in which they can run. Two nodes stay
    together if one reads a value of the other that may not be passed between pieces. Nodes on a path between such nodes
    stay with them."""
    nodes = computing(graph)
    places = {node: at for at, node in enumerate(nodes)}
    behind: list[set[int]] = [set() for _ in nodes]
    """For each node, the nodes that must run in the same piece or later."""
    for node, at in places.items():
        for value in reads([node], graph):
            producer = value.producer()
            if producer in places:
                behind[places[producer]].add(at)
                # this edge back makes a cycle of both nodes, and a cycle becomes one piece
                if not may_cross(value):
                    behind[at].add(places[producer])
    return [[nodes[at] for at in group] for group in _in_order(_cycles(behind), behind)]


def _cycles(behind: Sequence[set[int]]) -> list[list[int]]:
    """Returns the strongly connected components of a graph of numbers (Kosaraju's algorithm), each sorted."""
    before: list[set[int]] = [set() for _ in behind]
    for at, found in enumerate(behind):
        for other in found:
            before[other].add(at)
    order: list[int] = []
    seen: set[int] = set()
    for start in range(len(behind)):
        order += _walked(start, behind, seen)
    taken: set[int] = set()
    return [sorted(one) for start in reversed(order) if (one := _walked(start, before, taken))]


def _walked(start: int, behind: Sequence[set[int]], seen: set[int]) -> list[int]:
    """Returns the unseen numbers that `start` leads to, in postorder: each after the numbers that it leads to."""
    if start in seen:
        return []
    seen.add(start)
    found: list[int] = []
    path = [(start, iter(behind[start]))]
    while path:
        at, rest = path[-1]
        following = next((one for one in rest if one not in seen), None)
        if following is None:
            found.append(at)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(behind[following])))
    return found


def _in_order(groups: list[list[int]], behind: Sequence[set[int]]) -> list[list[int]]:
    """Sorts the groups so that each runs after the groups that it needs. Otherwise keeps their order."""
    of = {at: number for number, group in enumerate(groups) for at in group}
    following = [{of[other] for at in group for other in behind[at]} - {number} for number, group in enumerate(groups)]
    waiting = [0] * len(groups)
    for found in following:
        for number in found:
            waiting[number] += 1
    ready = [(groups[number][0], number) for number, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    done = []
    while ready:
        _, number = heapq.heappop(ready)
        done.append(groups[number])
        for other in following[number]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (groups[other][0], other))
    return done


def pieces_of(model: ir.Model, divided: Sequence[Nodes]) -> list[Piece]:
    """Makes the models of the pieces, weights shared. Inputs and outputs get the inferred types and shapes of
    `model`."""
    places = {node: at for at, node in enumerate(model.graph)}
    copy = cloned(model)
    nodes = list(copy.graph)
    parts = [[nodes[places[node]] for node in piece] for piece in divided]
    of = {node: number for number, part in enumerate(parts) for node in part}
    results = set(copy.graph.outputs)
    needed = set(results)
    for number, part in enumerate(parts):
        for value in reads(part, copy.graph):
            producer = value.producer()
            if producer is not None and of.get(producer, number) != number:
                needed.add(value)
    made = [_ports(part, copy.graph, of, needed) for part in parts]
    loose = [value for value in results if value.producer() not in of and not value.is_graph_input()]
    copy.graph.outputs.clear()
    found = []
    for number, (part, (inputs, weights, sources)) in enumerate(zip(parts, made, strict=True)):
        copy.graph.remove(part)
        outputs = [value for node in part for value in node.outputs if value in needed]
        if number == len(parts) - 1 and loose:
            held = {value.name: value for value in weights}
            stored = [held.get(value.name) or _constant(value) for value in loose]
            weights, outputs = list(dict.fromkeys((*weights, *stored))), [*outputs, *stored]
        graph = ir.Graph(
            inputs, outputs, nodes=part, initializers=weights, opset_imports=dict(copy.opset_imports),
            name=f"{copy.graph.name or 'graph'}_{number}",
        )  # fmt: skip
        functions = _called(copy, part)
        one = ir.Model(graph, ir_version=copy.ir_version, producer_name=copy.producer_name, functions=functions)
        found.append(Piece(one if not functions else cloned(one), len(part), sources))
    return found


def may_cross(value: ir.Value) -> bool:
    """Whether a value may be passed between pieces: whether it is a tensor of known rank."""
    return isinstance(value.type, ir.TensorType) and value.shape is not None


def reads(nodes: Iterable[ir.Node], graph: ir.Graph) -> list[ir.Value]:
    """Returns the values of `graph` that the nodes and their bodies read, each once."""
    found = (value for node in nodes for value in captures.reads(node))
    return list(dict.fromkeys(value for value in found if _owner(value) is graph))


def _owner(value: ir.Value) -> object:
    producer = value.producer()
    return value.graph if producer is None else producer.graph


def _ports(
    part: Nodes, graph: ir.Graph, of: dict[ir.Node, int], needed: set[ir.Value]
) -> tuple[list[ir.Value], list[ir.Value], dict[str, int | None]]:
    """Gives the part its own inputs and weights in place of the values that it reads. Returns them, and the source of
    each input."""
    own = set(part)
    inputs: list[ir.Value] = []
    weights: list[ir.Value] = []
    sources: dict[str, int | None] = {}
    stand_ins: dict[ir.Value, ir.Value] = {}
    for value in reads(part, graph):
        producer = value.producer()
        if producer in own:
            continue
        if value.is_graph_input() or producer in of:
            port = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
            inputs.append(port)
            sources[value.name or ""] = None if producer is None else of[producer]
            if value.is_initializer():
                weights.append(port)
            else:
                port.const_value = None
        else:
            port = _constant(value)
            weights.append(port)
        stand_ins[value] = port
    captures.read_instead(part, stand_ins)
    return inputs, weights, sources


def _constant(value: ir.Value) -> ir.Value:
    tensor = const_tensor(value)
    assert tensor is not None
    return ir.Value(name=value.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(dims(tensor)), const_value=tensor)


def _called(model: ir.Model, nodes: Nodes) -> list[ir.Function]:
    """Returns the functions that the nodes call, directly or through other functions."""
    found: dict[ir.OperatorIdentifier, ir.Function] = {}
    waiting = [inner for node in nodes for inner in (node, *walk.inside(node))]
    while waiting:
        node = waiting.pop()
        function = model.functions.get(node.op_identifier())
        if function is not None and node.op_identifier() not in found:
            found[node.op_identifier()] = function
            waiting += list(walk.nodes(function))
    return list(found.values())


def dims(tensor: ir.TensorProtocol) -> list[int]:
    """Returns the sizes of a stored tensor."""
    return [int(size) for size in tensor.shape]  # type: ignore[arg-type]  # they are static


def _is_constant(node: ir.Node) -> bool:
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return False
    return const_tensor(node.outputs[0]) is not None


def _behind(value: ir.Value, graph: ir.Graph) -> set[ir.Node]:
    """Returns the nodes of the graph that a value depends on."""
    found: set[ir.Node] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop().producer()
        if node is not None and node not in found and node.graph is graph:
            found.add(node)
            waiting += reads([node], graph)
    return found


def _weights(nodes: Nodes) -> list[int]:
    """Returns for each node the bytes of the weights that it reads first."""
    seen: set[ir.Value] = set()
    found = []
    for node in nodes:
        new = {value for one in (node, *walk.inside(node)) for value in one.inputs if value is not None} - seen
        seen |= new
        tensors = [const_tensor(value) for value in new]
        found.append(sum(tensor.nbytes for tensor in tensors if tensor is not None))
    return found
