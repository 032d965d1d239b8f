"""Shape rules of our own for operators where onnx-shape-inference takes for granted what need not be.

It takes two differently named dimensions that meet in a broadcast to be equal (one may be 1), the bounds of a Slice to
lie inside (`x[:1000]` of a dimension `n` would be 1000 long), the result of an Expand to have the shape that it asks
for, even where that of its input is unknown, and dimensions with a name not to be 1 where a Squeeze removes all that
are. A wrong shape is worse than none: rules rely on it. Here such a dimension becomes an expression, or a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

Dim = int | ir.SymbolicDim
Infer = Callable[[Any, ir.Node], None]
"""Called with the engine's context and a node, whose outputs' shapes it sets."""

_BROADCASTING = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip
_TO_THE_END = 2**31 - 1
"""Exporters write this, or the 64-bit one, for an open end."""


@cache
def install() -> None:
    """Puts these rules into the engine's registry, around or before its own; once is enough."""
    from onnx_shape_inference import registry

    for op in _BROADCASTING:
        _wrap(registry, op, _broadcasting)
    _wrap(registry, "Slice", _slice)
    _wrap(registry, "Squeeze", _squeeze)
    _wrap(registry, "ConstantOfShape", _constant_of_shape)
    _wrap(registry, "Expand", lambda _: _expand)


def _wrap(registry: Any, op: str, around: Callable[[Infer], Infer]) -> None:
    for since in registry.version_boundaries("", op):
        registry.register("", op, since)(around(registry.get("", op, since)))


def _broadcasting(infer: Infer) -> Infer:
    """Gives the engine inputs on whose dimensions it cannot err: where two names meet, one new name for both."""

    def careful(context: Any, node: ir.Node) -> None:
        values = list(dict.fromkeys(value for value in node.inputs if value is not None))
        shapes = {value: value.shape for value in values}
        joined = _joined(context, [shape for shape in shapes.values() if shape is not None])
        for value, shape in shapes.items():
            if shape is not None:
                met = joined[len(joined) - len(shape) :]
                value.shape = ir.Shape([dim if dim == 1 else new for dim, new in zip(shape, met, strict=True)])
        try:
            infer(context, node)
        finally:
            for value, shape in shapes.items():
                value.shape = shape

    return careful


def _joined(context: Any, shapes: Sequence[ir.Shape]) -> list[Dim]:
    """The shape that `shapes` are broadcast to, as far as it is sure."""
    rank = max((len(shape) for shape in shapes), default=0)
    ones: list[Dim] = [1]
    padded = [ones * (rank - len(shape)) + list(shape.dims) for shape in shapes]
    columns = zip(*padded, strict=True)
    return [_met(context, dict.fromkeys(context.simplify_dim(dim) for dim in column)) for column in columns]


def _met(context: Any, dims: dict[Dim, None]) -> Dim:
    sizes = [dim for dim in dims if isinstance(dim, int) and dim != 1]
    names = [dim for dim in dims if not isinstance(dim, int)]
    if sizes:
        return sizes[0]
    if len(names) > 1:
        fresh: ir.SymbolicDim = context.new_symbolic_dim()
        return fresh
    return names[0] if names else 1


def _expand(context: Any, node: ir.Node) -> None:
    data, target = node.inputs[0], node.inputs[1]
    if data is None or target is None:
        return
    wanted = ir.convenience.get_const_tensor(target)
    dims = context.get_symbolic_value(target) if wanted is None else np.asarray(wanted.numpy()).ravel().tolist()
    shape = None if data.shape is None or dims is None else ir.Shape(_joined(context, [data.shape, ir.Shape(dims)]))
    context.set_shape_and_dtype(node.outputs[0], shape, data.dtype)


def _squeeze(infer: Infer) -> Infer:
    def careful(context: Any, node: ir.Node) -> None:
        data = node.inputs[0]
        shape = data.shape if data is not None else None
        all_ones = "axes" not in node.attributes and (len(node.inputs) < 2 or node.inputs[1] is None)
        if data is not None and shape is not None and all_ones and not all(isinstance(dim, int) for dim in shape):
            context.set_shape_and_dtype(node.outputs[0], None, data.dtype)
        else:
            infer(context, node)

    return careful


def _constant_of_shape(infer: Infer) -> Infer:
    """The engine reads constants only; the shape of another value, which it follows elsewhere, will do too."""

    def careful(context: Any, node: ir.Node) -> None:
        infer(context, node)
        dims = context.get_symbolic_value(node.inputs[0]) if node.outputs[0].shape is None else None
        if dims is not None:
            context.set_shape(node.outputs[0], ir.Shape(dims))

    return careful


def _slice(infer: Infer) -> Infer:
    """Lets the engine do it, then puts right what it took to lie inside a dimension whose size it does not know."""

    def careful(context: Any, node: ir.Node) -> None:
        declared = node.outputs[0].shape
        infer(context, node)
        data, output = node.inputs[0], node.outputs[0]
        bounds = [_constants(value) for value in node.inputs[1:]]
        if data is None or data.shape is None or output.shape is None or len(bounds) < 2 or None in bounds[:2]:
            return
        starts, ends, axes, steps = ([*bounds, None, None])[:4]
        dims = list(output.shape)
        for index, (start, end) in enumerate(zip(starts or (), ends or (), strict=False)):
            axis = axes[index] if axes else index
            step = steps[index] if steps else 1
            dim = data.shape[axis]
            if isinstance(dim, int) or not (0 <= start < end < _TO_THE_END and step > 0) or (start, end) == (0, 1):
                continue
            said = declared[axis] if declared is not None else None
            dims[axis] = said if said is not None and said != ir.SymbolicDim(None) else _extent(dim, start, end, step)
        if dims != list(output.shape):
            output.shape = ir.Shape(dims)

    return careful


def _extent(dim: ir.SymbolicDim, start: int, end: int, step: int) -> Dim:
    """How many elements `[start:end:step]` takes of a dimension that may be shorter than `end`."""
    length = ir.SymbolicDim(f"Max(0, Min({dim.value}, {end}) - {start})")
    return length if step == 1 else (length + (step - 1)) // step


def _constants(value: ir.Value | None) -> list[int] | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(number) for number in np.asarray(tensor.numpy()).ravel()]
