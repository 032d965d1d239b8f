"""Counts the costs of each node, by the same rules as the costs of modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.verification.inputs.size_proposals import batches
from onnxsmith.viewer.inspection.costs.cost_groups import grouping
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes
from onnxsmith.viewer.inspection.costs.cost_totals import Group, Tallying
from onnxsmith.viewer.inspection.costs.parameters import Stored, stored


@dataclass(frozen=True)
class NodeCost:
    """Holds the costs of one node in one run. `group` is the node's row in the report. `activations` are the bytes of
    its results. `weight_bytes` are the bytes of the stored tensors that this node is the first to read."""

    group: str
    macs: int
    activations: int
    weight_bytes: int


def by_node(shaped: ir.Model, sizes: Mapping[str, int]) -> dict[ir.Node, NodeCost]:
    """Returns the costs of the nodes of a model with inferred shapes, at the `sizes` of a report.

    Nodes of a branch that the report does not count have no costs. Calls of local functions have no costs either,
    because the report counts the nodes of a function for each call.
    """
    names = {node: (str(at),) for at, node in enumerate(walk.all_nodes(shaped))}
    known = Sizes(sizes, batches(signature(shaped)))
    tally = Tallying(names.__getitem__, known).tally(shaped.graph)
    weights = stored(shaped, names.__getitem__)
    _, separator, path_of = grouping(walk.nodes(shaped.graph))
    found: dict[ir.Node, NodeCost] = {}
    for node, name in names.items():
        group, held = tally.groups.get(name), weights.get(name)
        if group is None and held is None:
            continue
        path = path_of(node)
        costs, own = group or Group(), held or Stored()
        found[node] = NodeCost(
            separator.join(path) if separator else path[0] if path else "",
            costs.macs.amount(known).at,
            costs.activations.amount(known, 8).at,
            own.bytes,
        )
    return found
