"""The pairs of two models so far: nodes, and the values that they compute."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.comparison.graphs.pairing_view import Values, View
from onnxsmith.graph.structure import provenance


class Pairs:
    """Pairs of nodes and values of two models, in all their graphs. `exact` has, for each side, a number for the whole
    computation of each value."""

    def __init__(self) -> None:
        self.nodes: dict[ir.Node, ir.Node] = {}
        self.values: dict[ir.Value, ir.Value] = {}
        self.exact: tuple[Values, Values] = ({}, {})
        self._taken: set[ir.Node | ir.Value] = set()
        """The nodes and values of the second side that are in a pair."""
        self._hints: dict[ir.Node, tuple[str, ...]] = {}

    def add(self, a: ir.Node, b: ir.Node) -> None:
        """Pairs two nodes, and their results by position."""
        self.nodes[a] = b
        self._taken.add(b)
        for one, other in zip(a.outputs, b.outputs, strict=False):
            self.add_values(one, other)

    def part(self, a: ir.Node, b: ir.Node) -> None:
        """Dissolves a pair of nodes, and the pairs of their results."""
        del self.nodes[a]
        self._taken.discard(b)
        for one, other in zip(a.outputs, b.outputs, strict=False):
            if self.values.get(one) is other:
                del self.values[one]
                self._taken.discard(other)

    def add_values(self, a: ir.Value, b: ir.Value) -> None:
        """Pairs two values."""
        self.values[a] = b
        self._taken.add(b)

    def has(self, one: ir.Node | ir.Value) -> bool:
        """Whether a node or value of either side is in a pair."""
        return one in self._taken or one in self.nodes or one in self.values

    def hints(self, node: ir.Node) -> tuple[str, ...]:
        """Returns texts that tell a node from similar ones: its origin in a torch program, its name, its result's
        name."""
        known = self._hints.get(node)
        if known is None:
            origin = provenance.of(node)
            place = f"{provenance.fx_name(node)}|{origin.module}" if origin.module or origin.source else ""
            result = next((value.name for value in node.outputs if value.name), "")
            known = self._hints[node] = place, node.name or "", result
        return known

    def same_computation(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether both values are computed in the same way from paired inputs and equal constants."""
        number = self.exact[0].get(a)
        return number is not None and number == self.exact[1].get(b)


class Same:
    """Tells whether an operand of one side is the same tensor as an operand of the other."""

    def __init__(self, a: View, b: View, pairs: Pairs) -> None:
        self._a, self._b, self._pairs = a, b, pairs

    def __call__(self, a: ir.Value | None, b: ir.Value | None) -> bool:
        if a is None or b is None:
            return a is b
        stored = self._a.is_stored(a), self._b.is_stored(b)
        if any(stored):
            return all(stored)
        return self._pairs.values.get(a) is b or self._is_twin(a, b)

    def _is_twin(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether the values are the same computation, which a model contains several times. Then it does not matter
        which copy is the partner, as long as the partner is used as often as the value itself."""
        if not self._pairs.same_computation(a, b):
            return False
        partner = self._pairs.values.get(a)
        return partner is not None and self._uses(self._a, a) == self._uses(self._b, partner)

    @staticmethod
    def _uses(view: View, value: ir.Value) -> tuple[int, bool]:
        return len(view.readers.get(value, ())), value in view.results
