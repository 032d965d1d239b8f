"""Makes tensors of the fractions of sizes that an integer tensor is multiplied with, divided by or added to.

`x * (n - 2.5)` with integers x and a size n: PyTorch's exporter promotes x to floats by an overload for known numbers,
and stores the number as a constant, which fails here. For two tensors it promotes as PyTorch does.
"""

from __future__ import annotations

from typing import Any

import torch

_ATEN = torch.ops.aten
_ARITHMETIC = (_ATEN.mul.Tensor, _ATEN.div.Tensor, _ATEN.add.Tensor, _ATEN.sub.Tensor)


def fractions_as_tensors(module: torch.fx.GraphModule) -> None:
    """Replaces the second operand of such operations by a tensor of rank 0."""
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for target in _ARITHMETIC:
            for node in part.graph.find_nodes(op="call_function", target=target):
                if _is_fraction(node.args[1]) and _is_whole(node.args[0]):
                    _make_tensor(part.graph, node)
        part.recompile()


def _is_fraction(operand: Any) -> bool:
    return isinstance(operand, torch.fx.Node) and isinstance(operand.meta.get("val"), torch.SymFloat)


def _is_whole(operand: Any) -> bool:
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())


def _make_tensor(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    x, fraction = node.args[:2]
    dtype = node.meta["val"].dtype
    with graph.inserting_before(node):
        made = graph.call_function(_ATEN.scalar_tensor.default, (fraction,), {"dtype": dtype})
        with node.meta["val"].fake_mode:
            made.meta["val"] = torch.empty((), dtype=dtype)
    node.args = (x, made, *node.args[2:])
