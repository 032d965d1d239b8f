"""Defines a match: a place where a model has a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk


@dataclass(frozen=True)
class Match:
    """A place where a model has a pattern.

    `graph` is the graph, body or function of the results. `nodes` has the model's node for each node of the pattern,
    None in a choice that was not taken. `bindings` are the values of the variables. `attributes` are the attributes of
    the attribute variables, None if left out. `outputs` are the results. `kept` are the nodes that stay in use if the
    results are replaced, because their result is read elsewhere, is a graph output, or is computed in an outer
    graph."""

    pattern: Pattern
    graph: ir.Graph | ir.Function
    nodes: tuple[ir.Node | None, ...]
    bindings: Mapping[str, ir.Value]
    attributes: Mapping[str, ir.Attr | None]
    outputs: tuple[ir.Value, ...]
    kept: tuple[ir.Node, ...] = field(default=())

    @property
    def node(self) -> ir.Node:
        """The node of the first result."""
        found = self.outputs[0].producer()
        assert found is not None
        return found

    @property
    def taken(self) -> tuple[ir.Node, ...]:
        """The nodes of the match, those of the results first."""
        return tuple(dict.fromkeys(node for node in reversed(self.nodes) if node is not None))

    @cached_property
    def values(self) -> dict[str, ir.Value]:
        """The values of the variables, and of the results of the pattern's nodes, by name."""
        pairs = zip(self.pattern.nodes, self.nodes, strict=True)
        made = ((one, node) for one, node in pairs if node is not None)
        results = {name: value for one, node in made for name, value in zip(one.outputs, node.outputs, strict=False)}
        return {**results, **self.bindings}

    def integer(self, name: str) -> int | None:
        """Returns the integer that an attribute variable is bound to; None if the attribute is left out, is no integer,
        or refers to a function's attribute."""
        found = self.attributes.get(name)
        plain = found is not None and not found.is_ref() and found.type is ir.AttributeType.INT
        return found.as_int() if found is not None and plain else None

    def made(self, name: str) -> ir.Node:
        """Returns the node whose result the pattern calls `name`."""
        found = self.values[name].producer()
        assert found is not None
        return found

    def names(self, node: ir.Node) -> set[str]:
        """Returns the names that the pattern gives to the results of a node."""
        return {
            name
            for one, found in zip(self.pattern.nodes, self.nodes, strict=True)
            if found is node
            for name in one.outputs
        }

    @property
    def removable(self) -> tuple[ir.Node, ...]:
        """The nodes that become unused if the results are replaced."""
        return tuple(dict.fromkeys(node for node in self.nodes if node is not None and node not in self.kept))

    @property
    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the variables that are bound to constants, by name."""
        found = ((name, facts.constant(value)) for name, value in self.bindings.items())
        return {name: array for name, array in found if array is not None}

    def constant(self, name: str) -> npt.NDArray[Any]:
        """Returns the array of a variable that stands for a constant."""
        found = facts.constant(self.bindings[name])
        assert found is not None
        return found

    def __getitem__(self, name: str) -> ir.Value:
        """Returns the value of a variable, or of a result of a node of the pattern."""
        return self.bindings[name] if name in self.bindings else self.values[name]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value.name}" for name, value in self.bindings.items())
        return f"{walk.node_label(self.node)}: {values}"
