"""Replaces computations on tensors without elements by constants in an exported program.

The result of an operator on empty tensors is a constant: the sum is 0, the mean is NaN, a slice is empty. Runtimes
disagree about such nodes (onnxruntime 1.31 gives a ReduceSum over an axis of length 0 the wrong rank), so they are
computed here, where sizes are known.
"""

from __future__ import annotations

from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.operators import OpOverload
from onnxsmith.base.seams.torch.tensors import FakeTensor


def fold_empty(module: torch.fx.GraphModule) -> None:
    """Replaces a node by a constant if its result, or each of its inputs, is known to have no elements."""
    graph = module.graph
    for node in list(graph.nodes):
        if not isinstance(node.target, OpOverload) or node.target in _FILLS:
            continue
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not _is_fixed(value) or value.is_complex():
            continue
        filling = 0 if value.numel() == 0 else _uniform(node)
        if filling is None:
            continue
        with graph.inserting_before(node):
            made = graph.call_function(
                torch.ops.aten.full.default, (list(value.shape), filling), {"dtype": value.dtype}
            )
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        made.name = node.name  # the program's signature refers to outputs by name
    module.recompile()


_FILLS = (torch.ops.aten.full.default, torch.ops.aten.empty.memory_format)


def _is_fixed(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in value.shape)


def _uniform(node: torch.fx.Node) -> Any:
    """Returns the number that fills the node's result on empty inputs; None if the inputs are not empty, or if the
    result holds different numbers."""
    given = [arg.meta.get("val") for arg in node.all_input_nodes]
    if not given or not all(isinstance(v, torch.Tensor) and _is_fixed(v) and v.numel() == 0 for v in given):
        return None

    def empty(leaf: Any) -> Any:
        return torch.empty(leaf.meta["val"].shape, dtype=leaf.meta["val"].dtype) if _is_node(leaf) else leaf

    args, kwargs = pytree.tree_map(empty, (node.args, dict(node.kwargs)), is_leaf=_is_node)
    try:
        result = node.target(*args, **kwargs)  # type: ignore[operator]
    except (RuntimeError, IndexError, ValueError):
        return None
    if not isinstance(result, torch.Tensor) or isinstance(result, FakeTensor) or result.shape != node.meta["val"].shape:
        return None
    return _only(result)


def _only(result: torch.Tensor) -> Any:
    flat = result.reshape(-1)
    same = flat.isnan() if flat[0].isnan() else flat == flat[0]
    return flat[0].item() if bool(same.all()) else None


def _is_node(leaf: Any) -> bool:
    return isinstance(leaf, torch.fx.Node)
