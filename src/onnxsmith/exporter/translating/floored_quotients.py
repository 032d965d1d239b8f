"""Makes quotients of sizes round down, as in Python.

PyTorch's exporter writes `a // b` of sizes as ONNX's Div, which rounds towards 0: too large by one if `a` is negative,
such as a difference of sizes. `a % b` has the sign of `b` in Python and ONNX, so (a - a % b) / b is right for every
sign.
"""

from __future__ import annotations

import operator
from typing import Any

import torch


def floor_quotients(module: torch.fx.GraphModule) -> None:
    """Rewrites every quotient whose first operand may be negative, by the known bounds of the sizes."""
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in part.graph.find_nodes(op="call_function", target=operator.floordiv):
            if not _is_positive(node.args[0]):
                _floor(part.graph, node)
        part.recompile()


def _is_positive(operand: Any) -> bool:
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else operand
    if not isinstance(value, torch.SymInt):
        return isinstance(value, int) and value >= 0
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower >= 0)


def _floor(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    a, b = node.args
    with graph.inserting_before(node):
        rest = graph.call_function(operator.mod, (a, b))
        rest.meta["val"] = _value(a) % _value(b)
        whole = graph.call_function(operator.sub, (a, rest))
        whole.meta["val"] = _value(a) - rest.meta["val"]
    node.args = (whole, b)


def _value(operand: Any) -> Any:
    return operand.meta["val"] if isinstance(operand, torch.fx.Node) else operand
