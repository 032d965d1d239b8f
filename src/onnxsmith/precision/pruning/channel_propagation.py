"""Follows channels through a graph, operator by operator."""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.graph.structure import captures, walk
from onnxsmith.precision.pruning.channel_links import Links, Sizes
from onnxsmith.precision.pruning.operators.base import Operator


@functools.cache
def families() -> Mapping[str, Operator]:
    """Returns the family of each operator."""
    found = rooms.members("onnxsmith.precision.pruning.operators", Operator)
    return {op: family for family in found.values() for op in family.ops}


def linked(
    model: ir.Model,
    views: Mapping[tuple[Sizes, Sizes], int] | None = None,
    keep: Container[str] = (),
    twins: Sequence[tuple[str, str]] = (),
) -> Links:
    """Returns the ties of the main graph. The model must have inferred shapes, and its constants must be initializers.
    The output channels of nodes in `keep` stay. The two matrices of each pair in `twins` lose the same channels."""
    links = Links(dict(views or {}), twins=tuple(twins))
    for node in model.graph:
        links.node = node
        family = families().get(node.op_type) if not node.domain else None
        if family is not None:
            family.link(node, links)
        _pin_the_rest(node, links)
        if walk.node_label(node) in keep:
            for value in node.outputs:
                for axis in links.live_axes(value):
                    links.pin(value, axis, f"{links.label} is on the given keep-list")
    links.node = None
    for one, other in twins:
        a, b = model.graph.initializers[one], model.graph.initializers[other]
        for axis in (0, 1):
            if (one, axis) in links.slots or (other, 1 - axis) in links.slots:
                links.tie(a, axis, b, 1 - axis)
    for value in model.graph.outputs:
        for axis in links.live_axes(value):
            links.pin(value, axis, f"it reaches the output {value.name!r} of the graph")
    _pin_shared(model, links)
    return links


def _pin_the_rest(node: ir.Node, links: Links) -> None:
    """Pins the live axes of a node's inputs that its family did not tie."""
    inside = set(captures.captured(node))
    for value in captures.reads(node):
        for axis in links.live_axes(value):
            if value in inside:
                links.pin(value, axis, f"it is read in a branch or body of {node.op_type} {walk.node_label(node)!r}")
            elif id(node) not in links.readers.get((value.name or "", axis), set()):
                links.pin(value, axis, _not_understood(node))


ONNXRUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operators. The domains of its layouts begin with it (`com.microsoft.nchwc`)."""


def is_of_onnxruntime(node: ir.Node) -> bool:
    """Whether a node is an operator that only onnxruntime has."""
    return node.domain == ONNXRUNTIME or node.domain.startswith(f"{ONNXRUNTIME}.")


def _not_understood(node: ir.Node) -> str:
    own = ", an operator of onnxruntime," if is_of_onnxruntime(node) else ""
    return f"{walk.op_name(node)} {walk.node_label(node)!r}{own} is not understood here"


def _pin_shared(model: ir.Model, links: Links) -> None:
    """Pins shared weights that some reader does not follow along the same axis. If all readers follow the axis, their
    channels are removed together."""
    weights = {value.name or "": value for value in model.graph.initializers.values()}
    outputs = {value.name for value in model.graph.outputs}
    inner = {name.name for node in model.graph for name in captures.captured(node)}
    for slot in [slot for slot in links.slots if slot[0] in weights]:
        value = weights[slot[0]]
        readers = {id(use.node): use.node for use in value.uses()}
        others = [node for at, node in readers.items() if at not in links.readers.get(slot, set())]
        if others:
            said = f"{walk.op_name(others[0])} {walk.node_label(others[0])!r} reads all of the weight {slot[0]!r}, too"
            links.pin(value, slot[1], said)
        # The last condition: one node reads the weight twice, and its ties may follow only one use.
        elif slot[0] in outputs or slot[0] in inner or len(readers) < len(value.uses()):
            links.pin(value, slot[1], f"the weight {slot[0]!r} is shared")
