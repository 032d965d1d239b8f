"""Makes dimensions smaller: cuts all axes of one size to another size, in inputs and weights at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import tensor
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes.base import Array, Value

_MOST_SIZES = 24
"""How many sizes are tried. A choice."""
_MOST_TEXT = 64
"""Elements up to which integers count as sizes that the graph computes with. A choice."""


def smaller(case: Case, oracle: Oracle) -> Case:
    """Makes dimensions smaller: first the batch, then each size in inputs and weights, the largest first. A size is cut
    to 1, to 2, or to half, repeatedly."""
    for target in (1, 2):
        made = _batch(case, target)
        if made is not None and oracle.fails(made):
            case = made
            break
    for size in sorted(_found(case), reverse=True)[:_MOST_SIZES]:
        at = size
        while at > 1:
            fitting = (t for t in dict.fromkeys((1, 2, at // 2)) if 0 < t < at)
            done = next((t for t in fitting if oracle.fails(made := _resized(case, at, t))), None)
            if done is None:
                break
            case, at = _resized(case, at, done), done
    return case


def _found(case: Case) -> set[int]:
    shapes = [value.shape for value in case.feeds.values() if isinstance(value, np.ndarray)]
    shapes += [tuple(tensor.shape.numpy()) for tensor in walk.initializer_tensors(case.model)]
    return {size for shape in shapes for size in shape if size > 1}


def _batch(case: Case, target: int) -> Case | None:
    """Cuts the first axis of every input to `target`; None if it is no longer than that."""
    arrays = [value for value in case.feeds.values() if isinstance(value, np.ndarray) and value.ndim]
    first = {value.shape[0] for value in arrays}
    if len(first) != 1 or max(first) <= target:
        return None
    size = first.pop()
    copy = cloned(case.model)
    _forget(copy)
    for value in copy.graph.inputs:
        if value.shape is not None and len(value.shape):
            value.shape = ir.Shape([target if value.shape[0] == size else value.shape[0], *list(value.shape)[1:]])
    feeds = {n: v[:target] if isinstance(v, np.ndarray) and v.ndim else v for n, v in case.feeds.items()}
    return Case(copy, feeds)


def _resized(case: Case, size: int, target: int) -> Case:
    def cut(array: Array) -> Array:
        kept = tuple(slice(0, target) if n == size else slice(None) for n in array.shape)
        part = array[kept]
        # A small integer that equals the size is probably that size, such as an element of a Reshape's shape.
        if part.dtype.kind in "iu" and part.ndim <= 1 and part.size <= _MOST_TEXT:
            part = np.where(part == size, np.array(target, part.dtype), part)
        return np.ascontiguousarray(part).reshape(part.shape)

    copy = cloned(case.model)
    _forget(copy)
    for value in copy.graph.inputs:
        if value.shape is not None:
            value.shape = ir.Shape([target if dim == size else dim for dim in value.shape])
    for put, held in _weights(copy, size):
        put(tensor(cut(np.asarray(held.numpy())), held.name or ""))
    feeds: dict[str, Value] = {n: cut(v) if isinstance(v, np.ndarray) else v for n, v in case.feeds.items()}
    return Case(copy, feeds)


def _weights(model: ir.Model, size: int) -> Iterator[tuple[Callable[[ir.TensorProtocol], None], ir.TensorProtocol]]:
    """Yields tensors that have the size as a dimension, or hold it as a small integer, each with a function to replace
    it."""
    for value in list(walk.initializers(model)):
        held = value.const_value
        if held is not None and held.dtype != ir.DataType.STRING and _concerns(held, size):
            yield _setter(value), held
    for node in walk.all_nodes(model):
        attribute = node.attributes.get("value") if node.op_type == "Constant" else None
        if attribute is not None and attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
            held = attribute.as_tensor()
            if held.dtype != ir.DataType.STRING and _concerns(held, size):
                yield _attribute_setter(node), held


def _concerns(held: ir.TensorProtocol, size: int) -> bool:
    shape = held.shape.numpy()
    if size in shape:
        return True
    return (
        held.dtype.is_integer() and len(shape) <= 1 and held.size <= _MOST_TEXT and bool((held.numpy() == size).any())
    )


def _setter(value: ir.Value) -> Callable[[ir.TensorProtocol], None]:
    def put(new: ir.TensorProtocol) -> None:
        value.const_value = new
        value.shape = ir.Shape(new.shape.numpy())

    return put


def _attribute_setter(node: ir.Node) -> Callable[[ir.TensorProtocol], None]:
    def put(new: ir.TensorProtocol) -> None:
        node.attributes["value"] = ir.AttrTensor("value", new)

    return put


def _forget(model: ir.Model) -> None:
    """Removes declared shapes, which the new sizes would contradict."""
    for node in walk.all_nodes(model):
        for value in node.outputs:
            value.shape = None
    for graph in walk.graphs(model):
        if graph is not model.graph:
            for value in graph.inputs:
                value.shape = None
