"""Adds up the costs of a graph's nodes by group, branches and bodies included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.reading.weights import is_constant
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.viewer.inspection.costs.cost_groups import Path
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes
from onnxsmith.viewer.inspection.costs.sums import Sum
from onnxsmith.viewer.inspection.costs.trip_counts import trips
from onnxsmith.viewer.inspection.costs.zero_mac_operators import without_products
from onnxsmith.viewer.inspection.mac_rules.base import Dims, dims, rule_of


@dataclass
class Group:
    """Holds the costs of the nodes of one group. `activations` are bits."""

    nodes: int = 0
    macs: Sum = field(default_factory=Sum)
    activations: Sum = field(default_factory=Sum)

    def merge(self, other: Group) -> None:
        """Adds the costs of other nodes."""
        self.nodes += other.nodes
        self.macs.merge(other.macs)
        self.activations.merge(other.activations)


@dataclass
class Tally:
    """Holds the costs of some nodes, by group, and counts of operators."""

    groups: dict[Path, Group] = field(default_factory=dict)
    counted: int = 0
    uncounted: Counter[str] = field(default_factory=Counter)
    unknown_shape: Counter[str] = field(default_factory=Counter)
    without_macs: Counter[str] = field(default_factory=Counter)
    unsized: int = 0
    assumptions: list[str] = field(default_factory=list)

    def total(self) -> Group:
        """Returns the costs of all groups together."""
        whole = Group()
        for group in self.groups.values():
            whole.merge(group)
        return whole

    def merge(self, other: Tally) -> None:
        """Adds the costs of other nodes."""
        for path, group in other.groups.items():
            self.groups.setdefault(path, Group()).merge(group)
        self.counted += other.counted
        self.note(other)

    def note(self, other: Tally) -> None:
        """Adds the remarks on operators of other nodes that are not counted, without the costs of these nodes."""
        self.uncounted += other.uncounted
        self.unknown_shape += other.unknown_shape
        self.without_macs += other.without_macs
        self.unsized += other.unsized
        self.assumptions += other.assumptions


class Tallying:
    """Adds up the costs of graphs. Needs the group of each node, and the sizes by which it chooses between branches."""

    def __init__(self, path_of: Callable[[ir.Node], Path], sizes: Sizes) -> None:
        self._path_of, self._sizes = path_of, sizes

    def tally(self, graph: ir.Graph, times: Dims = ()) -> Tally:
        """Returns the costs of a graph whose nodes run `times` (a product). Tensors of a body count once, because each
        run can reuse their memory."""
        found = Tally()
        for node in graph:
            self._add(found, node, times)
            bodies = list(walk.named_subgraphs(node))
            if node.op_type == "If" and not node.domain:
                self._choose(found, node, bodies, times)
                continue
            for _, body in bodies:
                runs, assumed = trips(node, body)
                found.merge(self.tally(body, (*times, runs)))
                found.assumptions += [assumed] if assumed else []
        return found

    def _add(self, found: Tally, node: ir.Node, times: Dims) -> None:
        if is_constant(node):
            return
        group = found.groups.setdefault(self._path_of(node), Group())
        group.nodes += 1
        for value in node.outputs:
            bits = bits_of(value)
            if bits is not None:
                group.activations.add(bits)
            elif value.name:
                found.unsized += 1
        rule = rule_of(node)
        if rule is None:
            (found.without_macs if without_products(node) else found.uncounted)[op_name(node)] += 1
            return
        products = rule.products(node)
        if products is None:
            found.unknown_shape[op_name(node)] += 1
            return
        found.counted += 1
        for product in products:
            group.macs.add((*product, *times))

    def _choose(self, found: Tally, node: ir.Node, branches: list[tuple[str, ir.Graph]], times: Dims) -> None:
        """Adds the branch with the most multiply-accumulates at the sizes; among equals, the branch with the most
        bytes. Also notes the operators of the other branch that are not counted."""
        tallies = [(name, self.tally(branch, times)) for name, branch in branches]
        if not tallies:
            return
        best = max(tallies, key=lambda item: self._weigh(item[1]))
        for name, one in tallies:
            if one is best[1]:
                found.merge(one)
            else:
                found.note(one)
            if one is best[1] and len({self._weigh(other) for _, other in tallies}) > 1:
                found.assumptions.append(f"If {node_label(node)}: counted {name}, the larger branch at these sizes")

    def _weigh(self, tally: Tally) -> tuple[int, int]:
        whole = tally.total()
        return whole.macs.at(self._sizes), whole.activations.at(self._sizes)


def bits_of(value: ir.Value) -> Dims | None:
    """Returns the product that is the number of bits of a tensor; None if its dtype or shape is unknown."""
    shape = dims(value)
    if shape is None or value.dtype is None or not isinstance(value.type, ir.TensorType):
        return None
    if value.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    return (*shape, value.dtype.bitwidth)
