"""Replaces strides in a program by products of sizes: an ONNX graph has sizes, but no strides.

The module itself need not read a stride: a trace that needs a symbolic size may read it from a stride of equal value.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence

import torch


def strides_as_sizes(module: torch.fx.GraphModule) -> None:
    """Replaces every stride of a dense tensor, also in the bodies of loops and branches."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_stride.int):
                _replace(part.graph, node)
            part.recompile()


def _replace(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    source, axis = node.args
    assert isinstance(source, torch.fx.Node)
    value = source.meta["val"]
    axes = _inner(value, axis)
    if axes is None:
        return
    with graph.inserting_before(node):
        sizes = [graph.call_function(torch.ops.aten.sym_size.int, (source, one)) for one in axes]
        for size, one in zip(sizes, axes, strict=True):
            size.meta["val"] = value.shape[one]
        product = sizes[0]
        for size in sizes[1:]:
            before = product.meta["val"]
            product = graph.call_function(operator.mul, (product, size))
            product.meta["val"] = before * size.meta["val"]
    node.replace_all_uses_with(product)
    graph.erase_node(node)


def _inner(value: torch.Tensor, axis: object) -> Sequence[int] | None:
    """The smallest set of axes whose sizes multiply to the stride; None if there is none."""
    assert isinstance(axis, int)
    wanted = _text(value.stride(axis))
    others = [one for one in range(value.dim()) if one != axis]
    for count in range(1, len(others) + 1):
        for axes in itertools.combinations(others, count):
            if _text(math.prod(value.shape[one] for one in axes)) == wanted:
                return axes
    return None


def _text(size: int | torch.SymInt) -> str:
    return str(size.node.expr) if isinstance(size, torch.SymInt) else str(size)
