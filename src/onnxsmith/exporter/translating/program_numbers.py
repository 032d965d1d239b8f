"""Rewrites numbers and sizes of a traced program that the exporter would write wrongly."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from onnxsmith.base.seams.torch import translator

# Keeps Python numbers in a float64 model exact.
# PyTorch's exporter writes a Python float without a known dtype as a float32 constant and casts it: 0.1 becomes
# 0.100000001. As the constant is cast anyway, it may be float64: a cast of it to float32 gives the same number.

_FILLED = (torch.ops.aten.full.default, torch.ops.aten.full_like.default, torch.ops.aten.scalar_tensor.default)


def exact_numbers() -> AbstractContextManager[None]:
    """Writes a Python float that is cast as a float64 constant in the block, if float32 cannot hold it exactly."""
    return translator.exact_numbers(_is_float32)


def say_dtypes(module: torch.fx.GraphModule) -> None:
    """Writes the dtype of every tensor that is filled with a number, so that the exporter casts the number."""
    for node in module.graph.nodes:
        if (
            node.target in _FILLED
            and node.kwargs.get("dtype") is None
            and isinstance(node.meta.get("val"), torch.Tensor)
        ):
            node.kwargs = {**node.kwargs, "dtype": node.meta["val"].dtype}


def _is_float32(number: float) -> bool:
    return number != number or torch.tensor(number, dtype=torch.float32).item() == number


# Makes quotients of sizes round down, as in Python.
# PyTorch's exporter writes `a // b` of sizes as ONNX's Div, which rounds towards 0. The result may be too large by one
# if `a` is negative, for example a difference of sizes. `a % b` has the sign of `b` in Python and ONNX, so
# (a - a % b) / b is right for every sign.


def floor_quotients(module: torch.fx.GraphModule) -> None:
    """Rewrites every quotient whose first operand may be negative within the known bounds of the sizes."""
    for graph in _graphs(module):
        for node in graph.find_nodes(op="call_function", target=operator.floordiv):
            if not is_least(node.args[0], 0):
                _floor(graph, node)


def _graphs(module: torch.fx.GraphModule) -> Iterator[torch.fx.Graph]:
    """Yields the graph of the module and those of its loops and branches, to change them."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            yield part.graph
            part.recompile()


def is_least(operand: Any, least: int) -> bool:
    """Whether a size, or the size that a node computes, is known to be `least` or more."""
    value = value_of(operand)
    if not isinstance(value, torch.SymInt):
        return isinstance(value, int) and value >= least
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower >= least)


def _floor(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    a, b = node.args
    with graph.inserting_before(node):
        rest = graph.call_function(operator.mod, (a, b))
        rest.meta["val"] = value_of(a) % value_of(b)
        whole = graph.call_function(operator.sub, (a, rest))
        whole.meta["val"] = value_of(a) - rest.meta["val"]
    node.args = (whole, b)


def value_of(operand: Any) -> Any:
    """Returns a number, or the example value of a node; None if it has none."""
    return operand.meta.get("val") if isinstance(operand, torch.fx.Node) else operand


# Turns fractions of sizes into tensors, if an integer tensor is multiplied with them, divided by them or added to them.
# For `x * (n - 2.5)` with integers x and a size n, PyTorch's exporter uses an overload that stores the number as a
# constant, which fails for a computed number. For two tensors it promotes dtypes as PyTorch does.

_ATEN = torch.ops.aten
_ARITHMETIC = (_ATEN.mul.Tensor, _ATEN.div.Tensor, _ATEN.add.Tensor, _ATEN.sub.Tensor)


def fractions_as_tensors(module: torch.fx.GraphModule) -> None:
    """Replaces a second operand that is a fraction of sizes by a tensor of rank 0."""
    for graph in _graphs(module):
        for target in _ARITHMETIC:
            for node in graph.find_nodes(op="call_function", target=target):
                if _is_fraction(node.args[1]) and _is_whole(node.args[0]):
                    _make_tensor(graph, node)


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


# Replaces strides in a program by products of sizes: an ONNX graph has sizes, but no strides.
# The module itself need not read a stride: a trace that needs a symbolic size may read it from a stride of equal
# value.


def strides_as_sizes(module: torch.fx.GraphModule) -> None:
    """Replaces every stride of a dense tensor, also in bodies of loops and branches."""
    for graph in _graphs(module):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.sym_stride.int):
            _replace(graph, node)


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
    """Returns the fewest axes whose sizes multiply to the stride; None if there are none."""
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
