"""Finds layers whose channels are not followed, and says why: the weight is computed, a shape is unknown, the operator
is onnxruntime's own, or the layer is in a branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from onnxsmith.base.report.parts.pruning import FixedChannels
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import captures, walk
from onnxsmith.precision.pruning.channel_groups import Channels, is_of_onnxruntime
from onnxsmith.precision.pruning.channel_links import is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import integer

_WEIGHT = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "GRU": 1, "LSTM": 1, "RNN": 1}
"""Operators that need a weight, with the weight's index. A MatMul is a layer if an operand does not depend on graph
inputs."""
_CHANNELS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": -1}
"""The axis of a stored weight with the output channels. With `transB`, that of Gemm is axis 0."""


def unfollowed(model: ir.Model, found: Channels) -> tuple[FixedChannels, ...]:
    """Returns the layers of the main graph that are in no group and do not follow another layer, as depthwise layers
    do."""
    known = {name for name, _ in found.links.opened}
    rows = []
    for node in model.graph:
        weight = _weight(node)
        if weight is None or any(value.name in known for value in node.outputs) or _follows(node, weight):
            continue
        rows.append(FixedChannels((walk.node_label(node),), _count(node, weight), _why(node, weight)))
    return (*rows, *_of_onnxruntime(model))


def nested(model: ir.Model) -> str:
    """Returns a sentence about layers in branches and bodies, `12 Conv lie in branches of If, …`; "" if there are
    none."""
    counts: Counter[tuple[str, str]] = Counter()
    for graph in walk.main_graphs(model):
        for node in graph:
            for inner in walk.subgraphs(node):
                counts.update((node.op_type, one.op_type) for one in inner if _weight(one) is not None)
    if not counts:
        return ""
    holders = list(dict.fromkeys(holder for holder, _ in counts))
    said = [
        f"{_listed({op: count for (own, op), count in counts.items() if own == holder})} "
        f"{'lies' if sum(count for (own, _), count in counts.items() if own == holder) == 1 else 'lie'} in "
        f"{'branches' if holder == 'If' else 'bodies'} of {holder}"
        for holder in holders
    ]
    return f"{'; '.join(said)}, which prune does not change"


def of_onnxruntime(model: ir.Model) -> str:
    """Counts the operators of onnxruntime in the main graph: `9 com.microsoft::FusedConv`; "" if there are none."""
    return _listed(Counter(walk.op_name(node) for node in model.graph if is_of_onnxruntime(node)))


OPTIMISED = "this operator comes from onnxruntime's optimisations; prune the file from before these optimisations"
"""The reason and the fix for operators of onnxruntime."""


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _weight(node: ir.Node) -> ir.Value | None:
    """Returns the weight of a layer; None if the node is no layer."""
    if node.domain:
        return None
    if node.op_type in _WEIGHT:
        return node.inputs[_WEIGHT[node.op_type]] if len(node.inputs) > 1 else None
    if node.op_type == "MatMul":
        return next((value for value in reversed(node.inputs) if value is not None and _is_constant(value)), None)
    return None


def _is_constant(value: ir.Value) -> bool:
    """Whether a tensor does not depend on graph inputs and is no vector."""
    if is_weight(value):
        return (rank(value) or 0) > 1
    seen: set[ir.Node] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        node = one.producer()
        if node is None and not is_weight(one):
            return False
        if node is not None and node not in seen:
            seen.add(node)
            waiting += captures.reads(node)
    return True


def _follows(node: ir.Node, weight: ir.Value) -> bool:
    """Whether the channels are those of the input, as in a depthwise layer."""
    groups = integer(node, "group", 1)
    axis = {"Conv": 1, "ConvTranspose": 0}.get(node.op_type)
    if axis is None or groups == 1 or not is_weight(weight) or static(node.outputs[0], 1) is None:
        return False
    return static(weight, axis) == (1 if node.op_type == "Conv" else groups)


def _count(node: ir.Node, weight: ir.Value) -> int:
    """Returns the number of output channels of a layer; 0 if it is unknown."""
    y, axis = node.outputs[0], _CHANNELS.get(node.op_type)
    if node.op_type in ("GRU", "LSTM", "RNN"):
        return integer(node, "hidden_size", 0)
    if axis is None:
        return 0
    if node.op_type == "Gemm" and integer(node, "transB", 0):
        axis = 0
    if is_weight(weight) and rank(weight):
        count = static(weight, axis % (rank(weight) or 1)) or 0
        return count * (integer(node, "group", 1) if node.op_type == "ConvTranspose" else 1)
    return static(y, (rank(y) or 1) - 1 if node.op_type == "MatMul" else 1) or 0


def _why(node: ir.Node, weight: ir.Value) -> str:
    maker = weight.producer()
    if maker is not None:
        return f"its weight {weight.name!r} is computed by {walk.op_name(maker)} {walk.node_label(maker)!r}" + (
            "; `onnxsmith simplify` replaces this computation by a constant" if _is_constant(weight) else ""
        )
    if not is_weight(weight):
        return f"its weight {weight.name!r} is an input of the graph"
    blind = _blind(node)
    if blind is not None:
        return f"the shape after {walk.op_name(blind)} {walk.node_label(blind)!r} is not known"
    return f"prune does not support {node.op_type} with these operands and attributes"


def _blind(node: ir.Node) -> ir.Node | None:
    """Returns the first node upwards whose result has no known shape although its operands have. None if the shapes
    around the layer are known."""
    seen: set[ir.Node] = set()
    while node not in seen:
        seen.add(node)
        makers = [value.producer() for value in node.inputs if value is not None and rank(value) is None]
        above = next((maker for maker in makers if maker is not None), None)
        if above is None:
            return node if rank(node.outputs[0]) is None else None
        node = above
    return None


def _of_onnxruntime(model: ir.Model) -> Iterator[FixedChannels]:
    """Yields a row for each operator of onnxruntime that has a weight."""
    layers: dict[str, list[ir.Node]] = {}
    for node in model.graph:
        if is_of_onnxruntime(node) and any(_is_matrix(value) for value in node.inputs[:2]):
            layers.setdefault(walk.op_name(node), []).append(node)
    for name, nodes in layers.items():
        labels = tuple(walk.node_label(node) for node in nodes)
        yield FixedChannels(labels, sum(map(_first_axis, nodes)), f"{name}: {OPTIMISED}")


def _is_matrix(value: ir.Value | None) -> bool:
    return is_weight(value) and (rank(value) or 0) > 1 and facts.is_constant(value)


def _first_axis(node: ir.Node) -> int:
    """Returns the output channels of a FusedConv; 0 for other operators, whose weights may have them on another
    axis."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    return (static(weight, 0) or 0) if node.op_type == "FusedConv" and _is_matrix(weight) else 0
