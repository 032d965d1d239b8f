"""Corrects the shape rules for operators where onnx-shape-inference assumes too much.

The engine assumes the following, and none of it is always true:
- two differently named dimensions in a broadcast are equal (one may be 1);
- the bounds of a Slice lie inside (`x[:1000]` of a dimension `n` would have 1000 elements);
- the result of an Expand has the requested shape, even if the input's shape is unknown;
- a named dimension is not 1, where a Squeeze removes all dimensions of size 1;
- unknown axes, steps and parts have their default values.

A wrong shape is worse than an unknown shape, because rules rely on shapes. Here an uncertain dimension becomes an
expression or a new name.

If and Loop are in `sound_flow.py`; rules that use known integers are in `reshape_and_slice.py` and `integer_rules.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.seams.shape_engine import Context, Rules, library_rules
from onnxsmith.graph.shapes import (
    integer_rules,
    machine_learning,
    reshape_and_slice,
    runtime_operators,
    sequences,
    sound_flow,
    symbols,
)
from onnxsmith.graph.shapes.known_integers import elements
from onnxsmith.graph.structure.signature import names_something

Dim = int | ir.SymbolicDim
Infer = Callable[[Any, ir.Node], None]
"""Sets the shapes of a node's outputs, given the engine's context and the node."""

_BROADCASTING = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip

_COMPARING = {"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor"}
_NEWEST = 1 << 16
"""Is an opset newer than all."""
_POOLING = ("AveragePool", "LpPool", "MaxPool")


@cache
def rules() -> Rules:
    """Returns the engine's rules, some wrapped in our own rules and some replaced by them."""
    registry = library_rules()
    for op in _BROADCASTING:
        _wrap(registry, op, _broadcasting)
    for op in _POOLING:
        _wrap(registry, op, _pooling)
    for op in ("Resize", "Upsample"):
        _wrap(registry, op, _resize)
    _wrap(registry, "MatMul", _matmul)
    _wrap(registry, "Expand", lambda _: _expand)
    _wrap(registry, "Unique", _unique)
    _wrap(registry, "ArrayFeatureExtractor", lambda _: _array_feature_extractor, domain="ai.onnx.ml")
    _wrap(registry, "MelWeightMatrix", lambda _: _mel_weight_matrix)
    for op, around in reshape_and_slice.RULES.items():
        _wrap(registry, op, around)
    if registry.get("", "Slice", 1) is None:  # bounds are attributes before opset 10
        registry.register("", "Slice", 1)(reshape_and_slice.slice_(lambda context, node: None))
    for op, rule in integer_rules.RULES.items():
        _wrap(registry, op, integer_rules.around(rule))
    for op, versions in machine_learning.versions().items():
        for since in versions:
            if registry.get(machine_learning.DOMAIN, op, since) is None:
                registry.register(machine_learning.DOMAIN, op, since)(machine_learning.infer)
    _wrap(registry, "If", sound_flow.branch)
    _wrap(registry, "Loop", sound_flow.loop)
    runtime_operators.register(registry, _NEWEST)
    return registry


@cache
def _with_sequences() -> Rules:
    registry = rules().copy()
    for op in sequences.OPERATORS:
        _wrap(registry, op, sequences.around)
    _wrap(registry, "SequenceMap", sequences.mapped)
    return registry


def context(model: ir.Model, *, elements: bool = False) -> Context:
    """Makes an empty inference context for a model, with these rules. With `elements`, the value of a sequence gets the
    common shape of its elements."""
    if not elements:
        return Context(model.opset_imports, rules(), sound_flow.enter_bodies)

    def enter(context: Any, node: ir.Node) -> None:
        sound_flow.enter_bodies(context, node)
        if node.op_type == "SequenceMap" and not node.domain:
            sequences.enter_map(context, node)

    return Context(model.opset_imports, _with_sequences(), enter)


def is_sound(dim: int | ir.SymbolicDim) -> bool:
    """Whether a declared dimension has a meaning: a size, a name, or unknown. `?` and -1 have no meaning."""
    if isinstance(dim, int):
        return dim >= 0
    return dim.value is None or names_something(dim.value)


def _wrap(registry: Rules, op: str, around: Callable[[Infer], Infer], *, domain: str = "") -> None:
    for since in set(registry.version_boundaries(domain, op)):  # a set: a version is listed once per wrapped rule
        rule = registry.get(domain, op, since)
        assert rule is not None
        registry.register(domain, op, since)(around(rule))


def _broadcasting(_: Infer) -> Infer:
    """Replaces the engine's rule, which treats different names as equal dimensions and parses every expression
    again."""

    def careful(context: Any, node: ir.Node) -> None:
        values = [value for value in node.inputs if value is not None]
        shapes = [value.shape for value in values if value.shape is not None]
        shape = ir.Shape(_broadcast_dims(context, shapes)) if len(shapes) == len(node.inputs) else None
        dtype = ir.DataType.BOOL if node.op_type in _COMPARING else values[node.op_type == "Where"].dtype
        context.set_shape_and_dtype(node.outputs[0], shape, dtype)

    return careful


def _broadcast_dims(context: Any, shapes: Sequence[ir.Shape]) -> list[Dim]:
    """Returns the broadcast shape of `shapes`; an uncertain dimension gets a new name."""
    rank = max((len(shape) for shape in shapes), default=0)
    ones: list[Dim] = [1]
    padded = [ones * (rank - len(shape)) + list(shape.dims) for shape in shapes]
    return [_broadcast_dim(context, list(column)) for column in zip(*padded, strict=True)]


def _broadcast_dim(context: Any, dims: Sequence[Dim]) -> Dim:
    found = symbols.broadcast([symbols.canonical(dim if isinstance(dim, int) else dim.value or "") for dim in dims])
    if found is None or found == "":
        fresh: ir.SymbolicDim = context.new_symbolic_dim()
        return fresh
    return ir.SymbolicDim(found) if isinstance(found, str) else found


def _matmul(infer: Infer) -> Infer:
    """Broadcasts the batch dimensions; the engine makes a new name each time two names meet."""

    def careful(context: Any, node: ir.Node) -> None:
        a, b = node.inputs[:2]
        left, right = (None if value is None or value.shape is None else list(value.shape) for value in (a, b))
        if a is None or left is None or right is None or len(left) < 2 or len(right) < 2:
            infer(context, node)
            return
        batch = _broadcast_dims(context, [ir.Shape(left[:-2]), ir.Shape(right[:-2])])
        context.set_shape_and_dtype(node.outputs[0], ir.Shape([*batch, left[-2], right[-1]]), a.dtype)

    return careful


def _expand(context: Any, node: ir.Node) -> None:
    data, target = node.inputs[0], elements(node.inputs[1])
    if data is None:
        return
    sure = [e is not None and symbols.is_size(e, positive=False) for e in target or ()]
    named = [e if known else context.new_symbolic_dim() for e, known in zip(target or (), sure, strict=True)]
    wanted = None if target is None else ir.Shape(named)
    shape = None if data.shape is None or wanted is None else ir.Shape(_broadcast_dims(context, [data.shape, wanted]))
    context.set_shape_and_dtype(node.outputs[0], shape, data.dtype)


def _pooling(infer: Infer) -> Infer:
    """Gives symbolic dimensions new names under `ceil_mode`. A last window that starts in the padding is dropped; the
    engine respects this for numbers only."""

    def careful(context: Any, node: ir.Node) -> None:
        ceil, data, known = node.attributes.get("ceil_mode"), node.inputs[0], [value.shape for value in node.outputs]
        infer(context, node)
        if ceil is None or (not ceil.is_ref() and not ceil.as_int()) or data is None or data.shape is None:
            return
        unsure = [index for index, dim in enumerate(data.shape) if index > 1 and not isinstance(dim, int)]
        for output, before in zip(node.outputs, known, strict=True):
            shape, output.shape = output.shape, before
            if shape is not None:
                context.set_shape(output, _with_fresh(context, shape, unsure))

    return careful


def _with_fresh(context: Any, shape: ir.Shape, axes: Sequence[int]) -> ir.Shape:
    """Returns the shape with new names on these axes."""
    places = {axis % len(shape) for axis in axes} if len(shape) else set()
    return ir.Shape([context.new_symbolic_dim() if index in places else dim for index, dim in enumerate(shape)])


def _resize(infer: Infer) -> Infer:
    """Gives uncertain axes new names: axes whose `sizes` are only bounds (`keep_aspect_ratio_policy`), and axes whose
    size times scale depends on whether the runtime computes it in float or double."""

    def careful(context: Any, node: ir.Node) -> None:
        data, known = node.inputs[0], node.outputs[0].shape
        if data is not None and data.shape is not None and len(node.inputs) < 3:  # the form before opset 11
            scales = _scales(node)
            found: list[int | str | None] = [None] * len(data.shape)
            if len(scales) == len(found):
                found = [
                    _scaled(dim, scale) for dim, scale in zip(reshape_and_slice.dims(data) or (), scales, strict=True)
                ]
            reshape_and_slice.shaped(context, node.outputs[0], found, data.dtype)
            return
        infer(context, node)
        shape = node.outputs[0].shape
        if data is None or data.shape is None or shape is None or len(shape) != len(data.shape):
            return
        unsure = _unsure_of(node, data.shape)
        if unsure:
            node.outputs[0].shape = known
            context.set_shape(node.outputs[0], _with_fresh(context, shape, unsure))

    return careful


def _unsure_of(node: ir.Node, data: ir.Shape) -> list[int]:
    """Returns the axes whose size after a Resize or Upsample is uncertain."""
    attribute, policy = node.attributes.get("axes"), node.attributes.get("keep_aspect_ratio_policy")
    if attribute is not None and attribute.is_ref():
        return list(range(len(data)))
    axes = [axis % len(data) for axis in attribute.as_ints()] if attribute is not None else list(range(len(data)))
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        bounds = policy is not None and (policy.is_ref() or policy.as_string() != "stretch")
        return axes if bounds else []
    scales = _scales(node)
    if len(scales) != len(axes):
        return axes
    return [axis for axis, scale in zip(axes, scales, strict=True) if not _is_exact(data[axis], scale)]


def _scaled(dim: int | str | None, scale: float) -> int | str | None:
    """Returns a size times a scale, rounded down; None where it depends on how the runtime computes it."""
    if (
        dim is None
        or not math.isfinite(scale)
        or not _is_exact(dim if isinstance(dim, int) else ir.SymbolicDim(dim), scale)
    ):
        return None
    return math.floor(dim * scale) if isinstance(dim, int) else symbols.multiply(dim, int(scale))


def _is_exact(dim: Dim, scale: float) -> bool:
    """Whether a size times a scale, rounded down, is the same in float and in double."""
    if scale.is_integer():
        return True
    return isinstance(dim, int) and int(np.float32(dim) * np.float32(scale)) == int(dim * scale)


def _scales(node: ir.Node) -> Sequence[float]:
    attribute = node.attributes.get("scales")
    if attribute is not None:
        return [] if attribute.is_ref() else list(attribute.as_floats())
    value = node.inputs[1 if node.op_type == "Upsample" or len(node.inputs) == 2 else 2]
    tensor = None if value is None else const_tensor(value)
    return [] if tensor is None else [float(scale) for scale in np.asarray(tensor.numpy()).ravel()]


def _unique(infer: Infer) -> Infer:
    """Keeps the sizes of the other axes of a Unique along one axis; the engine drops them."""

    def careful(context: Any, node: ir.Node) -> None:
        data, axis = node.inputs[0], node.attributes.get("axis")
        if data is None or axis is None or const_tensor(data) is not None:
            infer(context, node)
            return
        shape = None if axis.is_ref() or data.shape is None else _with_fresh(context, data.shape, [axis.as_int()])
        for output, dtype in zip(node.outputs, (data.dtype, *[ir.DataType.INT64] * 3), strict=False):
            own = output is node.outputs[0]
            context.set_shape_and_dtype(output, shape if own else ir.Shape([context.new_symbolic_dim()]), dtype)

    return careful


def _array_feature_extractor(context: Any, node: ir.Node) -> None:
    """Gives the result one column per index, and one row for a vector. The engine counts only the last axis of the
    indices, and keeps the rank of a vector."""
    data, indices = node.inputs[:2]
    if data is None or indices is None:
        return
    shape = None
    if data.shape is not None and len(data.shape):
        several = [dim for dim in indices.shape or () if dim != 1]
        known = indices.shape is not None and all(isinstance(dim, int) for dim in several)
        count: Dim = math.prod(dim for dim in several if isinstance(dim, int)) if known else context.new_symbolic_dim()
        if indices.shape is not None and len(several) == 1:
            count = several[0]
        rows: list[Dim] = [1] if len(data.shape) == 1 else list(data.shape.dims[:-1])
        shape = ir.Shape([*rows, count])
    context.set_shape_and_dtype(node.outputs[0], shape, data.dtype)


def _mel_weight_matrix(context: Any, node: ir.Node) -> None:
    """Replaces the engine's rule, which swaps the first and the second size."""
    attribute = node.attributes.get("output_datatype")
    dtype = ir.DataType(attribute.as_int()) if attribute is not None and not attribute.is_ref() else None
    dtype = ir.DataType.FLOAT if attribute is None else dtype
    shape = ir.Shape([context.new_symbolic_dim(), context.new_symbolic_dim()])
    context.set_shape_and_dtype(node.outputs[0], shape, dtype)
