"""Takes nodes out of a region if other regions also read their results. An example is a shape that the exporter
computes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.node_regions import Region
from onnxsmith.graph.structure import walk
from onnxsmith.verification.random_draws import draws

_MOST = 8
"""Limits the nodes that are copied so that a node can leave its region. A choice: a shape needs a few, a module
many."""


def without_shared(work: Work, regions: Sequence[Region]) -> list[Region]:
    """Returns the regions without nodes that other regions read, if such nodes need few other nodes. Such a node leaves
    its region, but stays in the graph. Nodes that only it needs stay with it, and other nodes that it needs are
    copied."""
    home = {node: number for number, region in enumerate(regions) for node in region.nodes}
    order = {node: at for at, node in enumerate(walk.all_nodes(work.model))}
    found = []
    for number, region in enumerate(regions):
        kept = list(region.nodes)
        for node in region.nodes:
            readers = {home.get(reader) for value in node.outputs for reader in value.consumers()} - {None}
            # A module's own result goes only to the next module; no node of the module itself reads it.
            if number not in readers or len(readers) <= min(2, len(regions) - 1):
                continue
            needed = sorted(_needed(node, set(kept)), key=order.__getitem__)
            if len(needed) <= _MOST and not any(map(_is_odd, (node, *needed))):
                alone = [node, *_needed_by_no_other(node, needed)]
                _stand_alone(work, alone, [one for one in needed if one not in alone])
                for one in alone:
                    kept.remove(one)
                    del home[one]
        found.append(replace(region, nodes=tuple(kept)))
    return [region for region in found if region.nodes]


def _needed(node: ir.Node, among: set[ir.Node]) -> list[ir.Node]:
    """Returns the nodes of the region that a node needs. The search stops once there are too many nodes to copy."""
    found: dict[ir.Node, None] = {}
    waiting = [node]
    while waiting and len(found) <= _MOST:
        for value in waiting.pop().inputs:
            maker = value.producer() if value is not None else None
            if maker is not None and maker in among and maker not in found:
                found[maker] = None
                waiting.append(maker)
    return list(found)


def _needed_by_no_other(node: ir.Node, needed: Sequence[ir.Node]) -> list[ir.Node]:
    """Returns the needed nodes whose results are read only by the node and by one another. `needed` is in the order of
    the graph."""
    found: dict[ir.Node, None] = {node: None}
    for one in reversed(needed):
        if not any(value.is_graph_output() or set(value.consumers()) - set(found) for value in one.outputs):
            found[one] = None
    return list(found)[1:]


def _is_odd(node: ir.Node) -> bool:
    return draws(node) or walk.has_subgraphs(node)


def _stand_alone(work: Work, nodes: Sequence[ir.Node], needed: Sequence[ir.Node]) -> None:
    """Lets the nodes read copies of the nodes that they need."""
    names = work.names
    copies: dict[ir.Value, ir.Value] = {}
    for one in needed:
        results = []
        for value in one.outputs:
            new = ir.Value(name=names.free(f"{value.name}_shared"), type=value.type, shape=value.shape)
            copies[value] = new
            results.append(new)
        inputs = [copies.get(value, value) if value is not None else None for value in one.inputs]
        made = ir.Node(
            one.domain, one.op_type, inputs, list(one.attributes.values()), overload=one.overload, outputs=results
        )
        made.metadata_props.update(one.metadata_props)
        graph_of(one).insert_after(one, made)
    for node in nodes:
        for place, operand in enumerate(node.inputs):
            if operand is not None and operand in copies:
                node.replace_input_with(place, copies[operand])
