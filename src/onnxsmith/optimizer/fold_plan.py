"""Decides which nodes are folded: nodes with constant inputs whose results do not make the file grow too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk

_HEAD = 12
"""Bytes of a tensor in a file without its name and values: dtype, dimensions, lengths. An estimate."""
SLACK = 8192
"""Bytes by which folding may enlarge a group of connected nodes. A choice: fewer nodes are worth these bytes. The
caller checks the size of the whole file, and simplifies again without slack if the file grew."""
_LARGE = 1 << 20
"""A tensor of more bytes is large: a large graph output is not folded, and a large weight of a Gemm is not transposed.
A choice."""
_GEMM = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE}
_MOST_BYTES = 1 << 30
"""Bytes of the largest value that is computed, intermediate values included. A choice: 1 GiB fits most machines."""
_MOST_TURNS = 20
"""Attempts to shrink a group that grows too much by dropping its last nodes. Afterwards the group is refused. A choice:
keeps the work linear in the number of nodes."""
_NEVER = walk.RANDOM | {
    "Constant",
    "DequantizeLinear",  # would undo the quantisation of a weight
    "Dropout",
    "If",
    "Loop",
    "Scan",
}
_MAY_GROW = {"ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"}


class FoldPlan:
    """The nodes to fold: nodes with constant inputs whose results do not make the file grow by more than `budget`
    bytes. `growth` is the used part of the budget, `denied` the bytes that the other candidates would add.

    With `spare_narrow`, casts of weights to a wider dtype are not folded: the weight was stored in a narrow dtype to
    save these bytes."""

    def __init__(
        self,
        model: ir.Model,
        refused: set[ir.Node],
        refuse: Callable[[ir.Node, str], None],
        budget: int,
        slack: int,
        spare_narrow: bool = True,
    ) -> None:
        self._functions = {(domain, name) for domain, name, _ in model.functions}
        self._refuse = refuse
        self._budget = budget
        self._slack = slack
        self._spare_narrow = spare_narrow
        self._sizes_of_nodes: dict[ir.Node, int] = {}
        self.growth = 0
        self.denied = 0
        chosen: dict[ir.Node, None] = {}
        for node in walk.nodes(model.graph):
            if node not in refused and self._is_candidate(node, chosen) and self._is_bounded(node):
                chosen[node] = None
        for turn in range(_MOST_TURNS):
            dropped = self._to_drop(chosen, whole=turn == _MOST_TURNS - 1)
            if not dropped:
                break
            chosen = _without(chosen, set(dropped))
        self.nodes = list(chosen)

    def _refuse_node(self, node: ir.Node, why: str) -> bool:
        self._refuse(node, why)
        return False

    def _is_candidate(self, node: ir.Node, chosen: Mapping[ir.Node, None]) -> bool:
        if node.domain or node.op_type in _NEVER or (node.domain, node.op_type) in self._functions:
            return False
        if node.op_type == "Identity" and not node.outputs[0].is_graph_output():
            return False  # a rule removes it without copying anything
        inputs = [value for value in node.inputs if value is not None]
        if not inputs or not all(facts.is_constant(value) or value.producer() in chosen for value in inputs):
            return False
        if walk.has_subgraphs(node):
            return False
        # refused, not ignored, so that the report names the weight
        if self._spare_narrow and _widening(node) > self._slack:
            return self._refuse_node(node, "the node widens a weight that is stored in fewer bits")
        if _is_read_transposed(node):
            return False  # a rule turns Transpose and MatMul into a Gemm, without a transposed copy of the weight
        training = node.attributes.get("training_mode")
        if training is not None and (training.is_ref() or training.as_int()):
            return False
        if any(value.dtype == ir.DataType.STRING for value in (*inputs, *node.outputs)):
            return self._refuse_node(node, "strings are not folded")
        if any(v.uses() and (v.dtype is None or not isinstance(v.type, ir.TensorType)) for v in node.outputs):
            return self._refuse_node(node, "the dtype of its result is unknown, or its result is not a tensor")
        return True

    def _is_bounded(self, node: ir.Node) -> bool:
        for value in node.outputs:
            size = nbytes(value)
            # results of other operators seldom grow beyond their inputs
            if size is None and node.op_type in _MAY_GROW:
                return self._refuse_node(node, "the size of its result is unknown")
            if size is not None and size > _MOST_BYTES:
                return self._refuse_node(node, f"its result would take {size:,} bytes")
            if value.is_graph_output() and (size is None or size > _LARGE):
                return self._refuse_node(node, "its result is a large graph output")
        return True

    def _to_drop(self, chosen: Mapping[ir.Node, None], *, whole: bool) -> list[ir.Node]:
        """Returns the nodes to drop: of each group that would make the weights grow, the last nodes, or with `whole`
        all nodes. A group is connected through results, not through constants, so that a refusal does not affect
        unrelated nodes."""
        group = _groups(chosen)
        freed: dict[ir.Node, int] = {}
        made: dict[ir.Node, int] = {}
        last: dict[ir.Node, list[ir.Node]] = {}
        for node in chosen:
            root = group[node]
            for value in dict.fromkeys(node.inputs):
                if value is not None and facts.is_constant(value) and _only_read_by(value, root, group, node):
                    freed[root] = freed.get(root, 0) + _file_bytes(value)
            leaving = [v for v in node.outputs if _leaves(v, chosen)]
            if leaving:
                made[root] = made.get(root, 0) + sum(_file_bytes(value) for value in leaving)
                last.setdefault(root, []).append(node)
        for node in chosen:
            root = group[node]
            freed[root] = freed.get(root, 0) + self._node_bytes(node)
        sizes = {root: size - freed.get(root, 0) for root, size in made.items()}
        over = self._over(sizes)
        self.denied = max(self.denied, sum(over.values()))  # of the first turn: later turns have smaller groups
        if whole:
            dropped = [node for node in chosen if group[node] in over]
        else:
            dropped = [node for root in over for node in _largest(last[root])]
        for node in dropped:
            self._refuse_node(node, f"its result would make the weights {over[group[node]]:,} bytes larger")
        return dropped

    def _node_bytes(self, node: ir.Node) -> int:
        """Returns the bytes of the node in a file."""
        if node not in self._sizes_of_nodes:
            self._sizes_of_nodes[node] = ir.serde.serialize_node(node).ByteSize()
        return self._sizes_of_nodes[node]

    def _over(self, sizes: Mapping[ir.Node, int]) -> dict[ir.Node, int]:
        """Returns the groups that grow by more than `slack` and by more than the remaining budget, with their
        growth."""
        self.growth = 0
        over = {}
        for root, size in sizes.items():
            if size <= self._slack:
                continue
            if size <= self._budget - self.growth:
                self.growth += max(0, size)
            else:
                over[root] = size
        return over


def _leaves(value: ir.Value, chosen: Mapping[ir.Node, None]) -> bool:
    return value.is_graph_output() or any(use.node not in chosen for use in value.uses())


def _largest(nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """Returns the nodes whose results have at least half the bytes of the largest result."""
    sizes = [sum(nbytes(value) or 0 for value in node.outputs) for node in nodes]
    return [node for node, size in zip(nodes, sizes, strict=True) if 2 * size >= max(sizes)]


def nbytes(value: ir.Value) -> int | None:
    """Returns the bytes of the value, with small integers packed; None if its shape or dtype is unknown."""
    if value.dtype is None or value.dtype == ir.DataType.STRING or value.shape is None or not value.shape.is_static():
        return None
    return -(-value.dtype.bitwidth * math.prod(value.shape.numpy()) // 8)


def _widening(node: ir.Node) -> int:
    """Returns the bytes that a cast of a stored weight to a wider dtype adds; 0 for other nodes."""
    value = node.inputs[0] if node.op_type == "Cast" and node.inputs else None
    if value is None or not facts.is_constant(value):
        return 0
    return max(0, (nbytes(node.outputs[0]) or 0) - (nbytes(value) or 0))


def _is_read_transposed(node: ir.Node) -> bool:
    """Whether a large weight is transposed only for matrix products, which a Gemm can do with the original weight."""
    value = node.outputs[0]
    if node.op_type != "Transpose" or value.shape is None or len(value.shape) != 2 or (nbytes(value) or 0) < _LARGE:
        return False
    uses = value.uses()
    return value.dtype in _GEMM and all(
        use.node.op_type == "MatMul" and use.idx == 1 and len(facts.dims(use.node.inputs[0]) or ()) == 2 for use in uses
    )


def _file_bytes(value: ir.Value) -> int:
    tensor = const_tensor(value)
    size = tensor.nbytes if tensor is not None else nbytes(value) or 0
    return size + len(value.name or "") + _HEAD


def _without(chosen: Mapping[ir.Node, None], dropped: set[ir.Node]) -> dict[ir.Node, None]:
    """Returns the chosen nodes without `dropped`, and without the nodes that read their results."""
    left: dict[ir.Node, None] = {}
    for node in chosen:
        makers = (value.producer() for value in node.inputs if value is not None)
        if node not in dropped and not any(maker in chosen and maker not in left for maker in makers):
            left[node] = None
    return left


def _groups(chosen: Mapping[ir.Node, None]) -> dict[ir.Node, ir.Node]:
    """Returns for each node a node that stands for its group. A group is connected through results that are read
    (union-find)."""
    parent = {node: node for node in chosen}

    def root(node: ir.Node) -> ir.Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in chosen:
        for value in node.inputs:
            maker = value.producer() if value is not None else None
            if maker is not None and maker in parent:
                parent[root(maker)] = root(node)
    return {node: root(node) for node in chosen}


def _only_read_by(value: ir.Value, root: ir.Node, group: Mapping[ir.Node, ir.Node], first: ir.Node) -> bool:
    """Whether only this group reads the constant, so that folding frees it. True for the first reader only, so that the
    constant counts once."""
    if value.is_graph_output():
        return False
    uses = value.uses()
    return all(group.get(use.node) is root for use in uses) and next(iter(uses)).node is first
