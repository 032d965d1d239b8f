"""Derives facts about a value from the nodes that compute it.

An `Analysis` says what a fact is, what is known without the producer, and how the fact about a result follows from
those about the operands. The walk is the same for all: on demand, from a value up to its producers, because rules ask
about few values of a graph that changes between their questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, ClassVar, Generic, TypeVar

import onnx_ir as ir

from onnxsmith.graph.structure import walk

Fact = TypeVar("Fact")

MOVING = (
    *("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
    *("Tile", "Transpose", "Unsqueeze"),
)
"""Lists operators whose results have elements of their first input only."""


class Analysis(Generic[Fact]):
    """Remembers the facts that it found, so that an object serves several questions about an unchanged graph. None
    stands for the fact that nothing is known. Analyses that ask each other share a budget: `partner` is the first."""

    most: ClassVar[int] = 48
    """Limits the values whose producers one question visits. A choice: position arithmetic of real models takes fewer,
    and each step recurses."""
    rules: ClassVar[Mapping[str, Callable[[Any, ir.Node], Any]]]
    """Computes the fact about the results of a node from the walk and the node, by operator of ONNX's own domain."""

    def __init__(self, partner: Analysis[Any] | None = None) -> None:
        self._facts: dict[ir.Value, Fact | None] = {}
        self._left: list[int] = [self.most] if partner is None else partner._left

    def ask(self, value: ir.Value | None) -> Fact | None:
        """Returns the fact about a value, as a new question that may visit `most` values."""
        self._left[0] = self.most
        return self.of(value)

    def of(self, value: ir.Value | None) -> Fact | None:
        """Returns the fact about a value, as a part of a question."""
        if value is None:
            return None
        if value not in self._facts:
            self._facts[value] = self.fact(value)
        return self._facts[value]

    def fact(self, value: ir.Value) -> Fact | None:
        """Computes the fact about a value. An analysis adds what is known without the producer."""
        return self.computed(value)

    def computed(self, value: ir.Value) -> Fact | None:
        """Computes the fact about a value from its producer. The result of an If is that of either branch; states of
        loops are unknown."""
        node = value.producer()
        self._left[0] -= 1
        if node is None or node.domain or self._left[0] < 0:
            return None
        if node.op_type == "If":
            return self.joined(branch.outputs[value.index() or 0] for branch in self.branches(node))
        rule = self.rules.get(node.op_type)
        return None if rule is None else rule(self, node)

    def branches(self, node: ir.Node) -> list[ir.Graph]:
        """Returns the branches that an If may take; an empty list if one is unknown."""
        branches = list(walk.subgraphs(node))
        return branches if len(branches) == 2 else []

    def first(self, node: ir.Node) -> Fact | None:
        """Returns the fact about the first operand."""
        return self.of(node.inputs[0])

    def joined(self, values: Iterable[ir.Value | None]) -> Fact | None:
        """Returns what holds for each of these values."""
        facts = list(map(self.of, values))
        return reduce(lambda a, b: None if a is None or b is None else self.join(a, b), facts) if facts else None

    def join(self, a: Fact, b: Fact) -> Fact | None:
        """Returns what follows from either fact."""
        return a if a == b else None
