"""Makes a node of one graph equal to its counterpart in the other: operator, attributes, constants and operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import onnx_ir as ir

from onnxsmith.comparison.graphs.attribute_changes import effective
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.runtimes.base import Array

_MOST_NODES = 8
"""How many nodes of the other graph may be copied. A choice: more is another network, not a mistake."""


class CannotUndo(Exception):  # noqa: N818 — an answer, not an error
    """The counterpart needs something that this graph does not have."""


class Undoing:
    """Changes nodes of `model` to their form in the graph of `other`. `partners` maps the other graph's tensors to this
    graph's, by name. `forms` are the other graph's nodes in the opset of `model`, by the name of their first output. It
    is empty if no conversion is needed."""

    def __init__(
        self,
        model: ir.Model,
        other: ir.Model,
        partners: Mapping[str, str],
        forms: Mapping[str, ir.Node] = MappingProxyType({}),
    ) -> None:
        self._model, self._other, self._partners, self._forms = model, other, partners, forms
        self._names = Names(model)
        graph = model.graph
        self._values = {value.name or "": value for node in graph for value in node.outputs}
        self._values |= {value.name or "": value for value in graph.inputs}
        self._copies: dict[ir.Value, ir.Value] = {}

    def prefer(self, partners: Mapping[str, str]) -> None:
        """Takes these partners of the other graph's tensors before others. A tensor behind a detour through a narrower
        dtype has the value of its partner, but the tensor before the detour has its computation."""
        self._partners = {**self._partners, **partners}

    def undo(self, output: str, one: ir.Node) -> None:
        """Replaces the node that computes the tensor `output` by a copy of its counterpart `one`.

        Raises:
            CannotUndo: if an operand has no counterpart and cannot be copied.
        """
        node, one = self._node(output), self._form(one)
        # Its bodies read tensors of the other graph.
        if walk.has_subgraphs(one):
            raise CannotUndo
        operands = [None if value is None else self._operand(value) for value in one.inputs]
        made = ir.Node(
            one.domain,
            one.op_type,
            operands,
            self._attributes(one),
            outputs=[ir.Value(name=f"{value.name}.undone", type=value.type) for value in node.outputs],
            name=node.name,
        )
        if len(node.outputs) > len(one.outputs):
            raise CannotUndo
        self._model.graph.insert_after(node, [made])
        ir.convenience.replace_all_uses_with(node.outputs, made.outputs, replace_graph_outputs=True)
        names = [value.name for value in node.outputs]
        self._model.graph.remove(node, safe=True)
        for name, value in zip(names, made.outputs, strict=True):
            value.name = name
            self._values[name or ""] = value

    def set_attributes(self, output: str, one: ir.Node, names: Collection[str]) -> None:
        """Gives the node that computes the tensor `output` these attributes of `one`, and removes those that `one`
        lacks."""
        node = self._node(output)
        given = {attribute.name: attribute for attribute in self._attributes(one)}
        for name in names:
            node.attributes.pop(name, None)
            if name in given:
                node.attributes.add(given[name])

    def set_operand(self, output: str, place: int, name: str) -> None:
        """Lets the node that computes the tensor `output` read this model's tensor `name` as operand `place`."""
        if name not in self._values:
            raise CannotUndo
        self._node(output).replace_input_with(place, self._values[name])

    def set_constant(self, output: str, place: int, array: Array) -> None:
        """Lets the node that computes the tensor `output` read an array as operand `place`."""
        value = ir.Value(name=self._names.free(f"{output}.constant"), const_value=ir.tensor(array))
        value.type, value.shape = ir.TensorType(ir.DataType.from_numpy(array.dtype)), ir.Shape(array.shape)
        self._model.graph.register_initializer(value)
        self._node(output).replace_input_with(place, value)

    def bypass(self, output: str, place: int) -> None:
        """Lets all readers of the tensor `output` read operand `place` of its node instead."""
        node = self._node(output)
        read = node.inputs[place]
        if read is None:
            raise CannotUndo
        self._replace(node.outputs[0], read)

    def transplant(self, one: ir.Value, name: str) -> None:
        """Computes the tensor `name` as the other graph computes `one`, from the nearest tensors that have a partner.

        Raises:
            CannotUndo: if too many nodes lie between, or if they read what this graph does not have.
        """
        self._node(name)
        old = self._values[name]
        made = self._copied(one)
        self._replace(old, made)

    def _replace(self, old: ir.Value, new: ir.Value) -> None:
        """Lets all readers of `old` read `new`. A graph output keeps its name."""
        for place, value in enumerate(self._model.graph.outputs):
            if value is old:
                name = old.name or ""
                old.name = self._names.free(f"{name}.replaced")
                node = ir.Node("", "Identity", [new], outputs=[ir.Value(name=name, type=old.type)])
                self._model.graph.append(node)
                self._model.graph.outputs[place] = node.outputs[0]
        ir.convenience.replace_all_uses_with([old], [new])

    def _node(self, output: str) -> ir.Node:
        value = self._values.get(output)
        node = value.producer() if value is not None else None
        if node is None:
            raise CannotUndo
        return node

    def undo_output(self, one: ir.Value, name: str) -> None:
        """Computes the output `name` of the graph as the other graph computes its output `one`.

        Raises:
            CannotUndo: as `undo`.
        """
        graph = self._model.graph
        place = next((n for n, value in enumerate(graph.outputs) if value.name == name), None)
        if place is None:
            raise CannotUndo
        graph.outputs[place].name = self._names.free(f"{name}.replaced")
        node = ir.Node("", "Identity", [self._operand(one)], outputs=[ir.Value(name=name)])
        graph.append(node)
        graph.outputs[place] = node.outputs[0]

    def finish(self) -> None:
        """Sorts the nodes, so that each follows the nodes that it reads from.

        Raises:
            CannotUndo: if there is no such order.
        """
        try:
            self._model.graph.sort()
        except ValueError as error:
            raise CannotUndo from error

    def _attributes(self, one: ir.Node) -> list[ir.Attr]:
        """Returns all attributes, including the defaults of the other model's opset, which this model may not share."""
        same = self._other.opset_imports.get(one.domain) == self._model.opset_imports.get(one.domain)
        if same or one.graph is not self._other.graph:
            return list(one.attributes.values())
        return list(effective(one, self._other.opset_imports).values())

    def _operand(self, value: ir.Value) -> ir.Value:
        known = self._values.get(self._partners.get(value.name or "", ""))
        if known is not None:
            return known
        if value not in self._copies:
            self._copies[value] = self._copied(value)
        return self._copies[value]

    def _copied(self, value: ir.Value) -> ir.Value:
        if value.const_value is not None:
            copy = ir.Value(name=self._names.free(f"{value.name}.copied"), const_value=value.const_value)
            copy.type, copy.shape = ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape.numpy())
            self._model.graph.register_initializer(copy)
            return copy
        maker = value.producer()
        if maker is None or len(self._copies) >= _MOST_NODES:
            raise CannotUndo
        node, place = self._form(maker), maker.outputs.index(value)
        operands = [None if read is None else self._operand(read) for read in node.inputs]
        outputs = [ir.Value(name=self._names.free(f"{made.name}.copied"), type=made.type) for made in node.outputs]
        made = ir.Node(node.domain, node.op_type, operands, self._attributes(node), outputs=outputs)
        self._model.graph.append(made)
        return made.outputs[place]

    def _form(self, one: ir.Node) -> ir.Node:
        return self._forms.get(one.outputs[0].name or "", one) if one.outputs else one
