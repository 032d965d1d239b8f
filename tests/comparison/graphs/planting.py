"""Plants single changes into a model, of every kind and at every place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk
from tests.comparison.graphs.models import before

Graph = ir.Graph


@dataclass(frozen=True)
class Planted:
    """A change to make in a model: what it is, where, and what `diff` has to report of it."""

    kind: str
    where: str
    make: Callable[[ir.Model], None]
    count: int = 1
    """How many such changes there are: a node is removed with those in its branches."""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}"


def graphs(model: ir.Model) -> list[Graph]:
    """Every graph: the main one, branches, bodies, functions and those inside them."""
    return [*walk.graphs(model), *(function.graph for function in model.functions.values())]


def places(model: ir.Model) -> Iterator[tuple[int, int, ir.Node]]:
    """The number of each node's graph, its number there, and the node."""
    for n, graph in enumerate(graphs(model)):
        yield from ((n, m, node) for m, node in enumerate(graph))


def at(model: ir.Model, place: tuple[int, int]) -> ir.Node:
    return list(graphs(model)[place[0]])[place[1]]


def stored(value: ir.Value | None) -> bool:
    if value is None:
        return False
    node = value.producer()
    return value.is_initializer() or (node is not None and node.op_type == "Constant")


def every(model: ir.Model) -> Iterator[Planted]:
    """Every change for a model."""
    for n, m, node in places(model):
        if node.op_type == "Constant":
            continue
        where = f"{node.op_type} {node.outputs[0].name}"
        yield from _attributes(node, (n, m), where)
        yield from _operators(node, (n, m), where)
        yield from _inserted(node, (n, m), where)
        yield from _removed(node, (n, m), where)
        yield from _rewired(node, (n, m), where)
        yield from _twice(node, (n, m), where)
    for name in model.graph.initializers:
        yield Planted("weight", name, lambda made, name=name: _one_element(made, name))
    for place, value in enumerate(model.graph.outputs):
        for other in _earlier(model.graph, None):
            if other is not value and not other.is_graph_output() and other.producer() is not None:
                yield Planted(
                    "output", f"{value.name} {other.name}", lambda made, p=place, o=other.name: _output(made, p, o)
                )


def _attributes(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    for name, one in node.attributes.items():
        if not one.is_ref() and one.type != ir.AttributeType.GRAPH:
            yield Planted("attribute", f"{where} {name}", lambda made, name=name: _flip(at(made, place), name))


def _flip(node: ir.Node, name: str) -> None:
    one = node.attributes[name]
    kinds = ir.AttributeType
    value = one.value
    match one.type:
        case kinds.INT:
            node.attributes[name] = ir.AttrInt64(name, value + 3)
        case kinds.FLOAT:
            node.attributes[name] = ir.AttrFloat32(name, value * 1.5 + 0.01)
        case kinds.INTS:
            node.attributes[name] = ir.AttrInt64s(name, [*value[:-1], value[-1] + 1])
        case kinds.STRING:
            node.attributes[name] = ir.AttrString(name, value + "x")
        case _:
            raise AssertionError(one.type)


_OTHER = {"Relu": "Sigmoid", "Tanh": "Sigmoid", "Add": "Sub", "Sub": "Add", "Mul": "Div", "Identity": "Not"}


def _operators(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    if node.op_type in _OTHER:
        yield Planted("operator", where, lambda made: setattr(at(made, place), "op_type", _OTHER[node.op_type]))


def _inserted(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    for slot, value in enumerate(node.inputs):
        if value is not None and not stored(value):
            for op in ("Abs", node.op_type):
                yield Planted(
                    "insert", f"{op} at {where} {slot}", lambda made, s=slot, o=op: _insert(at(made, place), s, o)
                )


def _insert(node: ir.Node, slot: int, op: str) -> None:
    made = ir.node(op, [node.inputs[slot]], name="inserted")
    made.outputs[0].name = "inserted_out"
    node.prepend(made)
    node.replace_input_with(slot, made.outputs[0])


def _removed(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    value = node.outputs[0]
    first = node.inputs[0] if node.inputs else None
    if first is not None and not stored(first) and not value.is_graph_output() and len(node.outputs) == 1:
        count = 1 + sum(one.op_type != "Constant" for one in walk.inside(node))
        yield Planted("remove", where, lambda made: _remove(at(made, place)), count)


def _remove(node: ir.Node) -> None:
    first = node.inputs[0]
    assert first is not None
    node.outputs[0].replace_all_uses_with(first)
    captures.release(node)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _earlier(graph: Graph, node: ir.Node | None) -> list[ir.Value]:
    """Values that the node could read."""
    found = [value for value in graph.inputs if not value.is_initializer()]
    for one in graph:
        if one is node:
            break
        if one.op_type != "Constant":
            found += one.outputs
    return found


def _rewired(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    assert isinstance(node.graph, ir.Graph)
    for slot, value in enumerate(node.inputs):
        if value is None or stored(value):
            continue
        for other in _earlier(node.graph, node):
            if other is not value and other not in node.inputs:
                yield Planted(
                    "rewire",
                    f"{where} {slot} {other.name}",
                    lambda made, s=slot, o=other.name: _rewire(at(made, place), s, o),
                )


def _rewire(node: ir.Node, slot: int, name: str | None) -> None:
    assert isinstance(node.graph, ir.Graph)
    (value,) = (one for one in _earlier(node.graph, node) if one.name == name)
    node.replace_input_with(slot, value)


def _twice(node: ir.Node, place: tuple[int, int], where: str) -> Iterator[Planted]:
    """The same computation a second time, for one of several readers."""
    if len(node.outputs[0].uses()) > 1 and not any(
        one.type == ir.AttributeType.GRAPH for one in node.attributes.values()
    ):
        yield Planted("twice", where, lambda made: _double(at(made, place)))


def _double(node: ir.Node) -> None:
    made = ir.Node(node.domain, node.op_type, node.inputs, list(node.attributes.values()), name="second")
    made.outputs[0].name = "second_out"
    node.append(made)
    use = next(iter(node.outputs[0].uses()))
    use.node.replace_input_with(use.idx, made.outputs[0])
    assert node not in before(node)


def _one_element(model: ir.Model, name: str) -> None:
    value = model.graph.initializers[name]
    assert value.const_value is not None
    array = value.const_value.numpy().copy()
    flat = array.reshape(-1)
    flat[flat.size // 2] = flat[flat.size // 2] + 1 if array.dtype != np.bool_ else not flat[flat.size // 2]
    value.const_value = ir.Tensor(array, name=name)


def _output(model: ir.Model, place: int, name: str | None) -> None:
    (value,) = (one for one in _earlier(model.graph, None) if one.name == name)
    old = model.graph.outputs[place]
    value.type, value.shape = old.type, old.shape
    model.graph.outputs[place] = value
    old.name, value.name = f"{old.name}_before", old.name


EXPECTED = {
    "attribute": "changed node",
    "operator": "changed node",
    "insert": "added node",
    "twice": "added node",
    "remove": "removed node",
    "rewire": "changed node",
    "output": "changed node",
    "weight": "changed weight",
}
"""What `diff` calls a planted change."""
