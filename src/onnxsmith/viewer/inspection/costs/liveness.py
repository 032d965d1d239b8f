"""Computes the most memory that inputs and intermediate tensors take at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.report.parts.model_summary import Peak
from onnxsmith.graph.reading.weights import is_constant
from onnxsmith.graph.structure import walk
from onnxsmith.viewer.inspection.costs.cost_sizes import Monomial, Sizes, Sum, split
from onnxsmith.viewer.inspection.costs.cost_totals import bits_of


@dataclass
class _Most:
    """Describes the largest memory of a graph: `bits` at the sizes, the same as a sum, and the node that runs at this
    moment. `bound` has the largest coefficient of each product of symbols over the run, so the peak is at most this sum
    for all sizes."""

    bits: int = 0
    live: Sum = field(default_factory=Sum)
    node: str = ""
    bound: Sum = field(default_factory=Sum)


_Piece = tuple[Monomial, int, int]
"""Holds the symbolic factors of a tensor's bits, their numeric factor, and the bits at the sizes."""


class Liveness:
    """Follows which tensors are live while the nodes of a graph run in the order of the file.

    A tensor is live until its last reader, or until the node whose branch or body reads it last. A graph output is live
    from the node that computes it to the end. Graph inputs are always live, because the caller holds them. Weights and
    constants are not counted. No memory is reused in place.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._inner: dict[ir.Node, _Most] = {}

    def peak(self, graph: ir.Graph) -> Peak:
        """Returns the peak of a graph, in bytes."""
        most = self._most(graph)
        always = most.live.terms == most.bound.terms
        return Peak(most.live.amount(self._sizes, 8), most.node, always, most.bound.amount(self._sizes, 8))

    def _most(self, graph: ir.Graph) -> _Most:
        """Walks twice: to find the node of the peak, and to collect the tensors that are live at this node."""
        best, at, bound = -1, -1, Sum()
        for step, (_, live, bits, changed) in enumerate(self._steps(graph)):
            for monomial in changed:
                if live.terms[monomial] > bound.terms.get(monomial, 0):
                    bound.terms[monomial] = live.terms[monomial]
            if bits > best:
                best, at = bits, step
        for step, (node, live, bits, _) in enumerate(self._steps(graph)):
            if step == at:
                found = Sum()
                found.terms = {monomial: count for monomial, count in live.terms.items() if count}
                return _Most(bits, found, "" if node is None else walk.node_label(node), bound)
        return _Most()

    def _steps(self, graph: ir.Graph) -> Iterator[tuple[ir.Node | None, Sum, int, list[Monomial]]]:
        """Yields for the start and for each node four things: the node, the live tensors as a sum, their bits, and the
        products that grew."""
        live, bits = Sum(), 0
        ends = _ends(graph)
        sizes: dict[ir.Value, _Piece] = {}

        def begin(value: ir.Value) -> Monomial | None:
            nonlocal bits
            piece = self._piece(value)
            if piece is None:
                return None
            sizes[value] = piece
            live.terms[piece[0]] = live.terms.get(piece[0], 0) + piece[1]
            bits += piece[2]
            return piece[0]

        grown = [begin(value) for value in graph.inputs if not value.is_initializer()]
        yield None, live, bits, [monomial for monomial in grown if monomial is not None]
        for node, ending in zip(graph, ends, strict=True):
            if is_constant(node):
                continue
            grown = [begin(value) for value in node.outputs if value.name]
            inner = self._inside(node)
            live.merge(inner.live)
            changed = [*(monomial for monomial in grown if monomial is not None), *inner.live.terms]
            yield node, live, bits + inner.bits, changed
            for monomial, count in inner.live.terms.items():
                live.terms[monomial] -= count
            for value in ending:
                piece = sizes.pop(value, None)
                if piece is not None:
                    live.terms[piece[0]] -= piece[1]
                    bits -= piece[2]

    def _piece(self, value: ir.Value) -> _Piece | None:
        product = bits_of(value)
        if product is None:
            return None
        monomial, number = split(product)
        return monomial, number, number * self._sizes.product(monomial)

    def _inside(self, node: ir.Node) -> _Most:
        """Returns the peak of the larger branch or of the body; nothing for a plain node."""
        if not node.attributes:
            return _NOTHING
        if node not in self._inner:
            bodies = [self._most(graph) for graph in walk.subgraphs(node)]
            self._inner[node] = max(bodies, key=lambda most: most.bits, default=_NOTHING)
        return self._inner[node]


_NOTHING = _Most()


def _ends(graph: ir.Graph) -> list[list[ir.Value]]:
    """Returns for each node the values of the graph that no later node reads."""
    last: dict[ir.Value, int] = {}
    count = 0
    for index, node in enumerate(graph):
        count += 1
        for value in node.outputs:
            last[value] = index
        for reader in (node, *walk.inside(node)):
            for operand in reader.inputs:
                if operand is not None and operand in last:
                    last[operand] = index
        for inner in walk.subgraphs(node):
            for result in inner.outputs:
                if result in last:
                    last[result] = index
    found: list[list[ir.Value]] = [[] for _ in range(count)]
    results = set(graph.outputs)
    for value, index in last.items():
        if value not in results:
            found[index].append(value)
    return found
