"""Makes a model in which some nodes compute in a narrower float.

There are two forms with the same narrow nodes. In the typed form, which is written to a file, these nodes have the
narrow dtype, weights included, with Casts at the borders.

In the rounded form everything stays float32, and pairs of Casts round the inputs and outputs of narrow nodes. This
gives the numbers of a kernel that accumulates in float32, as accelerators do, and it runs wherever float32 runs. It is
also the form to measure, because onnxruntime on a CPU has no float16 kernels for most operators. It computes these in
float32 and removes the Casts between two of them, so that nothing is rounded there and nothing overflows.

Graph inputs and outputs keep their dtypes, and so do inputs and outputs of bodies. Other nodes are unchanged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.narrowable_nodes import VALUE, Unit

Array = npt.NDArray[Any]

_FLOAT = ir.DataType.FLOAT
_DENSE = {"value", "value_float", "value_floats"}
"""Attributes of a Constant whose value can be converted."""


def narrowed(model: ir.Model, narrow: Collection[Unit], to: ir.DataType, *, rounded: bool = False) -> ir.Model:
    """Returns a copy of `model` in which the nodes `narrow` compute in `to`. With `rounded`, they compute in float32
    and their inputs and outputs are rounded to `to`. Unchanged weights are shared with `model`; the others are
    converted when they are read."""
    made = cloned(model)
    nodes = list(walk.nodes(made.graph))
    form = _Rounded(made, to) if rounded else _Typed(made, to)
    form.apply([(nodes[unit.index], unit) for unit in narrow])
    return made


class _Form(ABC):
    """Makes narrow versions of values, and float32 versions of narrow results."""

    def __init__(self, model: ir.Model, to: ir.DataType) -> None:
        self.to = to
        self.suffix = to.name.lower()
        self.names = Names(model)
        self.slots: set[tuple[ir.Node, int]] = set()
        self.ready: set[ir.Value] = set()
        """Values that hold only narrow numbers."""
        self._versions: dict[ir.Value, ir.Value] = {}
        self._home = {
            value: graph for graph in walk.graphs(model) for value in (*graph.inputs, *graph.initializers.values())
        }
        self._model = model

    def apply(self, narrow: Sequence[tuple[ir.Node, Unit]]) -> None:
        """Makes the nodes narrow."""
        self.slots = {(node, i) for node, unit in narrow for i in unit.inputs}
        for node, unit in narrow:
            for i in unit.outputs:
                self.give_back(node.outputs[i])
            if unit.attribute:
                self.declare(node, unit.attribute)
        for node, unit in narrow:
            for i in unit.inputs:
                value = node.inputs[i]
                if value is not None and value not in self.ready:
                    node.replace_input_with(i, self._version(value))
        self._drop_constants()

    def _drop_constants(self) -> None:
        """Removes Constant nodes that nothing reads any more."""
        for value in self._versions:
            maker = value.producer()
            if maker is None or maker.op_type != "Constant" or maker.domain or maker.graph is None:
                continue
            if not value.uses() and not value.is_graph_output():
                maker.graph.remove(maker, safe=True)

    @abstractmethod
    def give_back(self, value: ir.Value) -> None:
        """Gives readers that are not narrow the result of a narrow node in float32."""

    def declare(self, node: ir.Node, attribute: str) -> None:  # noqa: B027 — the rounded form changes no attribute
        """Sets the attribute that gives the dtype of the node's result."""

    @abstractmethod
    def made_narrow(self, value: ir.Value) -> ir.Value:
        """Returns a narrow version of an input, a constant, or the result of a node that is not narrow."""

    def _version(self, value: ir.Value) -> ir.Value:
        if value not in self._versions:
            self._versions[value] = self.made_narrow(value)
        return self._versions[value]

    def cast(self, value: ir.Value, to: ir.DataType, name: str = "", into: ir.Value | None = None) -> ir.Node:
        """Makes a Cast of `value`, not yet in a graph. Its output is `into`, or a new value called `name`."""
        made = into if into is not None else ir.Value(name=self.names.free(name))
        made.type, made.shape = ir.TensorType(to), value.shape
        return ir.Node("", "Cast", [value], [ir.AttrInt64("to", to.value)], outputs=[made], name=f"{made.name}_Cast")

    def place(self, value: ir.Value, nodes: Sequence[ir.Node]) -> None:
        """Inserts nodes directly after the value's producer, or at the start of its graph."""
        maker = value.producer()
        if maker is not None and maker.graph is not None:
            maker.graph.insert_after(maker, nodes)
            return
        graph = self._home.get(value, self._model.graph)
        if len(graph):
            graph.insert_before(graph[0], nodes)
        else:
            graph.extend(nodes)


class _Rounded(_Form):
    """Keeps everything in float32, and rounds by pairs of Casts."""

    def give_back(self, value: ir.Value) -> None:
        back = ir.Value(name=value.name)
        value.replace_all_uses_with(back, replace_graph_outputs=True)
        value.name = self.names.free(f"{value.name}_raw")
        self.place(value, self._pair(value, back))
        self.ready.add(back)

    def made_narrow(self, value: ir.Value) -> ir.Value:
        back = ir.Value(name=self.names.free(f"{value.name}_rounded"))
        self.place(value, self._pair(value, back))
        return back

    def _pair(self, value: ir.Value, back: ir.Value) -> list[ir.Node]:
        there = self.cast(value, self.to, f"{value.name}_{self.suffix}")
        again = self.cast(there.outputs[0], _FLOAT, into=back)
        return [there, again]


class _Typed(_Form):
    """Gives nodes and weights the narrow dtype."""

    def give_back(self, value: ir.Value) -> None:
        self.ready.add(value)
        inside = [(node, i) for node, i in value.uses() if (node, i) in self.slots]
        if len(inside) < len(value.uses()) or value.is_graph_output():
            wide = ir.Value(name=value.name)
            value.replace_all_uses_with(wide, replace_graph_outputs=True)
            for node, i in inside:
                node.replace_input_with(i, value)
            value.name = self.names.free(f"{value.name}_{self.suffix}")
            self.place(value, [self.cast(value, _FLOAT, into=wide)])
        value.type = ir.TensorType(self.to)

    def declare(self, node: ir.Node, attribute: str) -> None:
        if attribute == VALUE:
            held = node.attributes.get(VALUE)
            old = held.as_tensor().numpy() if held is not None else np.zeros(1, np.float32)
            node.attributes[VALUE] = ir.AttrTensor(VALUE, ir.Tensor(_converted(old, self.to), dtype=self.to))
        else:
            node.attributes[attribute] = ir.AttrInt64(attribute, self.to.value)

    def made_narrow(self, value: ir.Value) -> ir.Value:
        maker, graph = value.producer(), self._home.get(value)
        if maker is not None and maker.op_type == "Constant" and not maker.domain and _DENSE & set(maker.attributes):
            return self._constant(value, maker)
        if graph is not None and value.const_value is not None and value not in set(graph.inputs):
            return self._initializer(value, graph, value.const_value)
        node = self.cast(value, self.to, f"{value.name}_{self.suffix}")
        self.place(value, [node])
        return node.outputs[0]

    def _is_all_narrow(self, value: ir.Value) -> bool:
        return not value.is_graph_output() and all((node, i) in self.slots for node, i in value.uses())

    def _initializer(self, value: ir.Value, graph: ir.Graph, tensor: ir.TensorProtocol) -> ir.Value:
        # No reader needs the float32 weight, so that it is converted in place.
        if self._is_all_narrow(value):
            value.const_value, value.type = self._lazy(tensor, value.name), ir.TensorType(self.to)
            return value
        name = self.names.free(f"{value.name}_{self.suffix}")
        made = ir.Value(
            name=name,
            type=ir.TensorType(self.to),
            shape=ir.Shape(tensor.shape.numpy()),
            const_value=self._lazy(tensor, name),
        )
        graph.register_initializer(made)
        return made

    def _lazy(self, tensor: ir.TensorProtocol, name: str | None) -> ir.TensorProtocol:
        def read() -> ir.TensorProtocol:
            return ir.Tensor(_converted(tensor.numpy(), self.to), dtype=self.to, name=name)

        return ir.LazyTensor(read, dtype=self.to, shape=ir.Shape(tensor.shape.numpy()), name=name)

    def _constant(self, value: ir.Value, maker: ir.Node) -> ir.Value:
        held = next(attribute for name, attribute in maker.attributes.items() if name in _DENSE)
        is_tensor = held.type == ir.AttributeType.TENSOR
        array = held.as_tensor().numpy() if is_tensor else np.asarray(held.value, np.float32)
        name = self.names.free(f"{value.name}_{self.suffix}")
        made = ir.Value(name=name, type=ir.TensorType(self.to), shape=ir.Shape(array.shape))
        tensor = ir.Tensor(_converted(array, self.to), dtype=self.to)
        node = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)], outputs=[made], name=name)
        self.place(value, [node])
        return made


def _converted(array: Array, to: ir.DataType) -> Array:
    """Converts the numbers to the narrow dtype; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(array).astype(to.numpy())
