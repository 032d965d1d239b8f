"""Notes what a rule reads of a graph, so that a refusal is asked for again only when something that it read changed.

A rule does not say how far it looks. While rules are asked, the nodes, values and graphs of the model therefore have
classes of their own, which note each object whose changeable part is read: the operands of a node, the readers of a
value, its shape. What never changes in a simplification is not noted: the operator of a node, its results, the maker of
a value. What cannot be compared later, such as the order of all nodes of a graph, is noted as `ANYTHING`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import onnx_ir as ir

from onnxsmith.model.graph import walk

Noted = ir.Node | ir.Value | object

ANYTHING = object()
"""Stands for a read of what is not compared: the refusal is asked for again in each round."""

_FIXED = {
    ir.Node: {"op_type", "domain", "overload", "version", "outputs", "op_identifier"},
    ir.Value: {"producer", "index"},
    ir.Graph: {"opset_imports", "meta", "name"},
}
"""The members that do not change while a model is simplified. Of a graph, `meta` holds the places of its nodes: they
keep their order."""
_COMPARED = {
    ir.Node: {"inputs", "attributes", "graph", "name"},
    ir.Value: {
        *("uses", "consumers", "shape", "type", "dtype", "const_value", "metadata_props", "name", "graph"),
        *("is_graph_input", "is_graph_output", "is_initializer"),
    },
    ir.Graph: set[str](),
}
"""The members of which `state` has the content. All others are noted as `ANYTHING`."""
_OWN = ("__iter__", "__len__", "__getitem__", "__reversed__", "__contains__")
"""The members with a special name that read a graph."""


def state(one: ir.Node | ir.Value) -> tuple[object, ...]:
    """Returns what a rule may have read of a node or a value. Two states are equal if no rule can tell them apart."""
    if isinstance(one, ir.Node):
        return one.inputs, tuple(one.attributes.data.values()), one.graph, one.name
    shape, type_ = one.shape, one.type
    return (
        tuple(one.uses()),
        None if shape is None else tuple([dim if isinstance(dim, int) else dim.value for dim in shape]),
        type_,
        None if type_ is None else type_.dtype,
        one.const_value,
        dict(one.metadata_props),
        one.name,
        one.graph,
        (one.is_graph_input(), one.is_graph_output(), one.is_initializer()),
    )


def objects(model: ir.Model) -> Iterator[ir.Node | ir.Value]:
    """Yields every node and value of the model, the inputs of functions too."""
    yield from walk.values(model)
    yield from walk.all_nodes(model)
    for function in model.functions.values():
        yield from function.inputs


def graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """Yields every graph of the model, those of functions too."""
    yield from walk.graphs(model)
    for function in model.functions.values():
        yield function.graph


class NotedReads:
    """The objects that were read since `clear`, while `noting`."""

    def __init__(self) -> None:
        self._read: set[Noted] = set()
        self._classes = {base: _noting(base, self._read.add) for base in _FIXED}
        self._changed: list[Any] = []

    def clear(self) -> None:
        """Forgets what was read."""
        self._read.clear()

    def read(self) -> tuple[Noted, ...]:
        """Returns what was read."""
        return tuple(self._read)

    @contextmanager
    def noting(self, model: ir.Model) -> Iterator[None]:
        """Notes what is read of the model inside the block."""
        try:
            self.cover(list(objects(model)))
            self.cover(list(graphs(model)))
            yield
        finally:
            for one in self._changed:
                one.__class__ = type(one).__bases__[0]
            self._changed.clear()
            self._read.clear()

    def cover(self, every: Iterable[ir.Node | ir.Value | ir.Graph]) -> None:
        """Notes what is read of these objects, too, until the block ends."""
        for one in every:
            covered = self._classes.get(type(one))
            if covered is not None:
                one.__class__ = covered
                self._changed.append(one)


def _noting(base: type, note: Callable[[Noted], None]) -> type:
    """Makes a class like `base` that notes what is read of its objects."""
    members: dict[str, object] = {"__slots__": ()}
    for name, member in _public(base):
        if name in _FIXED[base]:
            continue
        compared = name in _COMPARED[base]
        if isinstance(member, property):
            members[name] = property(_noted(member.fget, note, compared), member.fset)
        elif isinstance(member, FunctionType):
            members[name] = _noted(member, note, compared)
        elif hasattr(member, "__get__") and hasattr(member, "__set__"):  # a slot
            members[name] = property(_noted(member.__get__, note, compared), member.__set__)
    return type(base.__name__, (base,), members)


def _public(base: type) -> Iterator[tuple[str, Any]]:
    for name in dir(base):
        if not name.startswith("_") or (base is ir.Graph and name in _OWN):
            yield name, getattr(base, name)


def _noted(read: Any, note: Callable[[Noted], None], compared: bool) -> Callable[..., Any]:
    if compared:

        def one(self: Noted) -> Any:
            note(self)
            return read(self)

        return one

    def other(self: Noted, *args: Any, **named: Any) -> Any:
        note(ANYTHING)
        return read(self, *args, **named)

    return other
