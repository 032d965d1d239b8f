"""Represents the place of new nodes: the end of a graph, or before one of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk

_SHARED = 64
"""Limits the bytes of equal constants that share an initializer. A choice: axes, shapes and scalars, but no weights."""


class Place:
    """The end of a graph, or the place before one of its nodes. `around` are the outer graphs, the innermost first."""

    def __init__(
        self,
        graph: ir.Graph,
        before: ir.Node | None = None,
        *,
        opsets: MutableMapping[str, int],
        around: tuple[Place, ...] = (),
        is_function: bool = False,
        own_initializers: bool = True,
    ) -> None:
        self.graph = graph
        self.opsets = opsets
        self.around = around
        self.is_function = is_function
        self._before = before
        self._own_initializers = own_initializers and not is_function
        self._constants: dict[Any, tuple[ir.Value, Any]] = {}
        self._added: list[ir.Node | ir.Value] = []

    @classmethod
    def of(cls, model: ir.Model, graph: ir.Graph | ir.Function | None, before: ir.Node | None) -> Place:
        """Returns the place in a graph of the model, by default in the graph of `before`, or in the main graph."""
        wanted = graph if graph is not None else before.graph if before is not None else None
        inner = wanted.graph if isinstance(wanted, ir.Function) else wanted or model.graph
        chain = _path(model, inner)
        places: tuple[Place, ...] = ()
        function = next((one for one in model.functions.values() if one.graph is chain[0]), None)
        opsets = model.opset_imports if function is None else function.opset_imports
        own = walk.has_own_initializers(model)
        for one in chain:
            places = (
                cls(
                    one,
                    before if one is inner else None,
                    opsets=opsets,
                    around=places,
                    is_function=function is not None and one is chain[0],
                    own_initializers=own,
                ),
                *places,
            )
        return places[0]

    @classmethod
    def of_function(cls, opsets: MutableMapping[str, int]) -> Place:
        """Returns the place in a new graph, the body of a function."""
        return cls(ir.Graph([], [], nodes=[], name="function"), opsets=opsets, is_function=True)

    def inside(self, graph: ir.Graph) -> Place:
        """Returns the place in a branch or body of a node that will be made here."""
        return Place(graph, opsets=self.opsets, around=(self, *self.around), own_initializers=self._own_initializers)

    def add(self, node: ir.Node) -> None:
        """Adds a node at this place."""
        if self._before is None:
            self.graph.append(node)
        else:
            self.graph.insert_before(self._before, node)
        self._added.append(node)

    def constant(self, tensor: ir.TensorProtocol, given: Any, name: Callable[[], str]) -> ir.Value:
        """Returns a constant with the tensor. Reuses an earlier constant if it is small and equal, or was made from the
        same array."""
        key = _key(tensor, given)
        held = self._constants.get(key) if key is not None else None
        if held is not None and (key[0] != "array" or _equal(held[0].const_value, tensor)):
            return held[0]
        value = self._new_constant(tensor, name())
        if key is not None:
            self._constants[key] = (value, given)  # `given` stays alive, so that its id stays its own
        return value

    def _new_constant(self, tensor: ir.TensorProtocol, name: str) -> ir.Value:
        type_, shape = ir.TensorType(tensor.dtype), ir.Shape(list(tensor.shape.numpy()))
        if not self._own_initializers:
            node = ir.node("Constant", [], attributes={"value": tensor}, name=name)
            (value,) = node.outputs
            value.name, value.type, value.shape = name, type_, shape
            self.add(node)
            return value
        tensor.name = name
        value = ir.Value(name=name, type=type_, shape=shape, const_value=tensor)
        self.graph.register_initializer(value)
        self._added.append(value)
        return value

    def find(self, name: str) -> ir.Value | None:
        """Returns the value of this name that a node here can read."""
        for place in (self, *self.around):
            found = next((value for value in place.values() if value.name == name), None)
            if found is not None:
                return found
        return None

    def names(self) -> Iterator[str]:
        """Yields the names that a node here can read."""
        for place in (self, *self.around):
            yield from (value.name for value in place.values() if value.name)

    def values(self) -> Iterator[ir.Value]:
        """Yields the inputs, initializers and results of this graph only."""
        yield from self.graph.inputs
        yield from self.graph.initializers.values()
        for node in self.graph:
            yield from node.outputs

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """If the block fails, removes the nodes and constants that it added."""
        count = len(self._added)
        try:
            yield
        except BaseException:
            for one in reversed(self._added[count:]):
                self._remove(one)
            del self._added[count:]
            raise

    def _remove(self, one: ir.Node | ir.Value) -> None:
        if isinstance(one, ir.Node):
            captures.release(one)
            self.graph.remove(one, safe=True)
            values = list(one.outputs)
        else:
            del self.graph.initializers[one.name or ""]
            values = [one]
        self._constants = {key: held for key, held in self._constants.items() if held[0] not in values}


def _path(model: ir.Model, graph: ir.Graph) -> list[ir.Graph]:
    """Returns the graphs from the main graph, or from a function, down to `graph`."""
    roots = [model.graph, *(function.graph for function in model.functions.values())]
    for root in roots:
        found = _descend(root, graph)
        if found is not None:
            return found
    raise ValueError(f"the graph {graph.name!r} is not part of the model")


def _descend(root: ir.Graph, graph: ir.Graph) -> list[ir.Graph] | None:
    if root is graph:
        return [root]
    for node in root if walk.FLAT not in root.meta else ():
        for inner in walk.subgraphs(node):
            found = _descend(inner, graph)
            if found is not None:
                return [root, *found]
    return None


def _key(tensor: ir.TensorProtocol, given: Any) -> Any:
    if given is None:
        return None
    if tensor.dtype != ir.DataType.STRING and tensor.nbytes <= _SHARED:
        return (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
    return ("array", id(given), tensor.dtype, tuple(tensor.shape))


def _equal(a: ir.TensorProtocol | None, b: ir.TensorProtocol) -> bool:
    return a is not None and a.tobytes() == b.tobytes()
