"""Brings tensors out of branches and bodies, as lists with one element for each computation of the tensor.

A list is an ONNX sequence. It starts empty in the main graph, enters a loop body as a state, and is captured by a
branch. Each computation of the tensor appends an element. So the elements may differ in shape, and nested loops give
one list in the order of execution.

A Scan cannot have sequences as states, and before opset 13 no loop or branch can. There the tensor becomes a scan
output, whose first axes count the iterations. This needs one element of the same shape in each iteration:
`nested_plan.py` refuses other tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.tensor_paths import Place
from onnxsmith.graph.surgery.nested_plan import SEQUENCES, Carriage

_IDENTITY = 14
"""Is the opset since which Identity takes sequences."""


@dataclass(frozen=True)
class Given:
    """A value of the main graph that holds the tensor. Its first `axes` axes count the computations of the tensor."""

    value: ir.Value
    axes: int


def give_out(model: ir.Model, wanted: Mapping[Place, Carriage], names: Names, opset: int) -> dict[Place, Given]:
    """Brings each place out as a value of the main graph. Changes the model in place, but not its outputs."""
    return _Carrier(model.graph, wanted, names, opset).given()


class _Carrier:
    def __init__(self, graph: ir.Graph, wanted: Mapping[Place, Carriage], names: Names, opset: int) -> None:
        self._graph, self._wanted, self._names, self._opset = graph, wanted, names, opset
        self._direct: dict[ir.Graph, list[Place]] = {}
        self._inner: dict[ir.Graph, dict[ir.Node, list[Place]]] = {}
        self._moved: dict[ir.Value, ir.Value] = {}
        self._axes = dict.fromkeys(wanted, 0)
        for place in wanted:
            home = graph
            for body in place.bodies:
                self._inner.setdefault(home, {}).setdefault(body.node, []).append(place)
                home = body.graph
            self._direct.setdefault(home, []).append(place)

    def given(self) -> dict[Place, Given]:
        found: dict[Place, ir.Value] = {}
        for node, places in self._inner.get(self._graph, {}).items():
            if self._stacks(node):
                found |= self._stacked(node, places)
            else:
                found |= self._through_lists(node, places, {place: self._empty_list(node, place) for place in places})
        for place in self._direct.get(self._graph, ()):
            found[place] = self._tensor_of(self._graph, place)
        return {place: Given(value, self._axes[place]) for place, value in found.items()}

    def _stacks(self, node: ir.Node) -> bool:
        return node.op_type == "Scan" or self._opset < SEQUENCES

    def _add(self, graph: ir.Graph, op: str, inputs: Sequence[ir.Value], place: Place, **attributes: Any) -> ir.Value:
        """Appends a node to a graph and returns its output."""
        node = ir.node(op, inputs, attributes=attributes)
        graph.append(node)
        return self._named(node.outputs[0], place)

    def _named(self, value: ir.Value, place: Place) -> ir.Value:
        value.name = self._names.free(f"{place.name}.carried")
        return value

    def _tensor_of(self, graph: ir.Graph, place: Place) -> ir.Value:
        """Returns the tensor itself, its shape, or a copy in a wider dtype, as its carriage says."""
        value, how = self._moved.get(place.value, place.value), self._wanted[place]
        if how.sizes:
            made = self._add(graph, "Shape", [value], place)
        elif how.widened and how.dtype is not None:
            made = self._add(graph, "Cast", [value], place, to=how.dtype)
        else:
            return value
        made.type = ir.TensorType(how.dtype) if how.dtype is not None else None
        return made

    def _list_type(self, place: Place) -> ir.SequenceType:
        dtype = self._wanted[place].dtype
        assert dtype is not None
        return ir.SequenceType(ir.TensorType(dtype))

    def _empty_list(self, node: ir.Node, place: Place) -> ir.Value:
        empty = ir.node("SequenceEmpty", [], attributes={"dtype": self._wanted[place].dtype})
        self._graph.insert_before(node, empty)
        made = self._named(empty.outputs[0], place)
        made.type = self._list_type(place)
        return made

    def _appended(self, graph: ir.Graph, place: Place, so_far: ir.Value, value: ir.Value) -> ir.Value:
        made = self._add(graph, "SequenceInsert", [so_far, value], place)
        made.type = self._list_type(place)
        return made

    def _visit(self, graph: ir.Graph, lists: Mapping[Place, ir.Value]) -> dict[Place, ir.Value]:
        """Extends the lists inside a body or branch, and returns the values that it must return."""
        found: dict[Place, ir.Value] = {}
        for node, places in self._inner.get(graph, {}).items():
            if self._stacks(node):
                stacks = self._stacked(node, places)
                found |= {place: self._appended(graph, place, lists[place], stacks[place]) for place in places}
            else:
                found |= self._through_lists(node, places, lists)
        for place in self._direct.get(graph, ()):
            found[place] = self._appended(graph, place, lists[place], self._tensor_of(graph, place))
        return found

    def _through_lists(
        self, node: ir.Node, places: Sequence[Place], lists: Mapping[Place, ir.Value]
    ) -> dict[Place, ir.Value]:
        through = self._through_branches if node.op_type == "If" else self._through_loop
        found = through(node, places, lists)
        for place, value in found.items():
            value.type = self._list_type(place)
        return found

    def _through_branches(
        self, node: ir.Node, places: Sequence[Place], lists: Mapping[Place, ir.Value]
    ) -> dict[Place, ir.Value]:
        for name in ("then_branch", "else_branch"):
            branch = node.attributes[name].as_graph()
            here = [place for place in places if any(body.graph is branch for body in place.bodies)]
            longer = self._visit(branch, {place: lists[place] for place in here})
            branch.outputs.extend(
                longer[place] if place in longer else self._unchanged(branch, place, lists[place]) for place in places
            )
        return self._further_outputs(node, places)

    def _unchanged(self, graph: ir.Graph, place: Place, value: ir.Value) -> ir.Value:
        """Returns the list unchanged. A branch may only return values that its own nodes make."""
        if self._opset >= _IDENTITY:
            made = self._add(graph, "Identity", [value], place)
        else:
            # before opset 14 Identity takes no sequence, so insert an element and erase it again
            extra = self._add(graph, "Constant", [], place, value=_empty(self._wanted[place].dtype, 1))
            made = self._add(graph, "SequenceErase", [self._appended(graph, place, value, extra)], place)
        made.type = self._list_type(place)
        return made

    def _through_loop(
        self, node: ir.Node, places: Sequence[Place], lists: Mapping[Place, ir.Value]
    ) -> dict[Place, ir.Value]:
        body = node.attributes["body"].as_graph()
        states = len(body.inputs) - 2
        entering = {
            place: ir.Value(name=self._names.free(f"{place.name}.carried"), type=self._list_type(place))
            for place in places
        }
        body.inputs.extend(entering.values())
        longer = self._visit(body, entering)
        body.outputs[1 + states : 1 + states] = [longer[place] for place in places]
        inputs = [*node.inputs, *[None] * (2 - len(node.inputs)), *(lists[place] for place in places)]
        new = self._replaced(node, inputs, len(body.outputs) - 1, states, len(places))
        made = new.outputs[states : states + len(places)]
        return {place: self._named(value, place) for place, value in zip(places, made, strict=True)}

    def _replaced(self, node: ir.Node, inputs: Sequence[ir.Value | None], size: int, at: int, more: int) -> ir.Node:
        """Replaces the node by a node with other inputs and with `more` outputs inserted at position `at`."""
        new = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            node.attributes.values(),
            overload=node.overload,
            num_outputs=size,
            version=node.version,
            name=node.name,
            doc_string=node.doc_string,
            metadata_props=dict(node.metadata_props),
        )
        graph = node.graph
        assert graph is not None
        graph.insert_before(node, new)
        for index, old in enumerate(node.outputs):
            value = new.outputs[index if index < at else index + more]
            value.name, value.type, value.shape = old.name, old.type, old.shape
            value.doc_string = old.doc_string
            value.metadata_props.update(old.metadata_props)
            old.replace_all_uses_with(value, replace_graph_outputs=True)
            self._moved[old] = value
        graph.remove(node, safe=True)
        return new

    def _stacked(self, node: ir.Node, places: Sequence[Place]) -> dict[Place, ir.Value]:
        """Stacks the values of all iterations into one tensor with a new first axis."""
        if node.op_type == "If":
            return self._stacked_branches(node, places)
        body = node.attributes["body"].as_graph()
        stacks = self._stacks_of(body)
        for place in places:
            value = stacks[place]
            own = value.producer() is not None and value.graph is body and not value.is_graph_output()
            body.outputs.append(value if own else self._add(body, "Identity", [value], place))
            self._axes[place] += 1
        for name in ("scan_output_axes", "scan_output_directions"):
            if name in node.attributes:
                old = node.attributes[name].as_ints()
                node.attributes[name] = ir.AttrInt64s(name, [*old, *[0] * len(places)])
        return self._further_outputs(node, places)

    def _stacked_branches(self, node: ir.Node, places: Sequence[Place]) -> dict[Place, ir.Value]:
        """Makes the branch that computes the tensor return it with a first axis, and the other branch return an empty
        tensor."""
        for name in ("then_branch", "else_branch"):
            branch = node.attributes[name].as_graph()
            stacks = self._stacks_of(branch)
            for place, value in stacks.items():
                if not self._axes[place]:
                    stacks[place] = self._counted(branch, place, value)
            for place in places:
                there = place in stacks
                branch.outputs.append(stacks[place] if there else self._nothing_computed(branch, place))
        for place in places:
            self._axes[place] = max(self._axes[place], 1)
        return self._further_outputs(node, places)

    def _stacks_of(self, graph: ir.Graph) -> dict[Place, ir.Value]:
        found: dict[Place, ir.Value] = {}
        for node, places in self._inner.get(graph, {}).items():
            found |= self._stacked(node, places)
        return found | {place: self._tensor_of(graph, place) for place in self._direct.get(graph, ())}

    def _counted(self, graph: ir.Graph, place: Place, value: ir.Value) -> ir.Value:
        """Adds a first axis of size 1."""
        made = self._add(graph, "Unsqueeze", [value], place, axes=[0])
        made.type = value.type
        return made

    def _nothing_computed(self, graph: ir.Graph, place: Place) -> ir.Value:
        dtype, axes = self._wanted[place].dtype, max(self._axes[place], 1)
        return self._add(graph, "Constant", [], place, value=_empty(dtype, axes))

    def _further_outputs(self, node: ir.Node, places: Sequence[Place]) -> dict[Place, ir.Value]:
        """Adds outputs to a node for the new last outputs of its body."""
        size = len(next(walk.subgraphs(node)).outputs) - (node.op_type == "Loop")
        node.resize_outputs(size)
        made = dict(zip(places, node.outputs[size - len(places) :], strict=True))
        for place, value in made.items():
            dtype = self._wanted[place].dtype
            self._named(value, place).type = None if dtype is None else ir.TensorType(dtype)
        return made


def _empty(dtype: ir.DataType | None, axes: int) -> ir.TensorProtocol:
    """Makes a tensor without elements."""
    assert dtype is not None
    if dtype == ir.DataType.STRING:
        return ir.StringTensor([], shape=ir.Shape([0] * axes))
    return ir.tensor(np.zeros([0] * axes, dtype.numpy()), dtype=dtype)
