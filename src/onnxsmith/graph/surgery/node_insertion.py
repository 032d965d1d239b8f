"""Inserts nodes before a node of a graph, and removes constants that a replaced node left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

_CONSTANTS_OF_ALL_DTYPES = 9
"""The first opset in which a Constant may have any dtype."""


class Inserter:
    """Inserts nodes in front of `place`. Their results are named after the results of `place`, with `suffix` and a
    number. `opset` is the opset of the new nodes."""

    def __init__(self, place: ir.Node, suffix: str, opset: int, free: Callable[[str], str] = lambda wish: wish) -> None:
        graph = place.graph
        assert graph is not None
        self.place, self.graph, self.opset = place, graph, opset
        self.made: list[ir.Node] = []
        self._prefix = f"{place.name or ''}{next((v.name for v in place.outputs if v.name), '')}/{suffix}"
        self._free = free

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """Inserts a node with one result, and returns the result."""
        given = [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()]
        node = ir.Node("", op_type, inputs, given, version=None)
        self.graph.insert_before(self.place, node)
        self.made.append(node)
        node.outputs[0].name = self.name(str(len(self.made)))
        return node.outputs[0]

    def name(self, wish: str) -> str:
        """Returns a name for a new value, made from a result's name of `place`."""
        return self._free(f"{self._prefix}{wish}")

    def constant(self, value: Any, dtype: Any = np.int64) -> ir.Value:
        """Inserts a Constant; an initializer where the opset has Constants of floats only."""
        tensor = value if isinstance(value, ir.TensorProtocol) else ir.tensor(np.array(value, dtype))
        floats = tensor.dtype.is_floating_point()
        if self.opset >= _CONSTANTS_OF_ALL_DTYPES or floats or not isinstance(self.graph, ir.Graph):
            return self.op("Constant", value=tensor)
        name, kind = self.name("constant"), ir.TensorType(tensor.dtype)
        made = ir.Value(name=name, shape=ir.Shape(list(tensor.shape.numpy())), type=kind, const_value=tensor)
        self.graph.register_initializer(made)
        return made

    def replace(self, results: Sequence[ir.Value]) -> None:
        """Replaces the outputs of `place` by these results, which take over their names, and removes `place`."""
        for value, new in zip(self.place.outputs, results, strict=False):
            new.name, value.name = value.name, None
            if value.type is not None:
                new.type, new.shape = value.type, value.shape
            value.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(self.place, safe=True)


def release(value: ir.Value) -> None:
    """Removes a constant that nothing reads any more."""
    if value.uses() or value.is_graph_output():
        return
    node = value.producer()
    if node is not None and node.op_type == "Constant" and node.graph is not None:
        node.graph.remove(node, safe=True)
    elif value.is_initializer() and not value.is_graph_input() and isinstance(value.graph, ir.Graph):
        del value.graph.initializers[value.name or ""]
