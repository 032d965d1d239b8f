"""Reads the facts about a value that are known before any run: constants, dimensions, and small integer tensors.

Shape inference notes the elements of small integer tensors: each is an integer or an expression such as `batch` or
`3*height`. Rules read these notes here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.seams.shape_engine import SYM_DATA_KEY
from onnxsmith.graph.shapes.known_integers import elements
from onnxsmith.graph.shapes.symbols import Element as Element
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.structure import walk

_ARRAY = "onnxsmith.array"
"""Is the key of a tensor's `meta` that holds its array."""
UNFOLDED = "onnxsmith.unfolded"
"""Is the key of a node's `meta` that marks a node with constant inputs that folding left as it is."""
_SHORT = 1024
"""Limits the bytes of an array that is kept. A choice: numbers, axes and shapes, which rules read often."""


def constant(value: ir.Value | None) -> npt.NDArray[Any] | None:
    """Returns the array of a constant value, or None.

    An initializer that is also a graph input is a default that the caller may replace, so it is not constant.
    """
    if value is None or not is_constant(value):
        return None
    tensor = const_tensor(value)
    return None if tensor is None else read(tensor)


def read(tensor: ir.TensorProtocol) -> npt.NDArray[Any]:
    """Returns the array of a tensor. The array of a short tensor message is kept, so callers must not write to it."""
    if not isinstance(tensor, ir.serde.TensorProtoTensor):
        return tensor.numpy()
    kept: npt.NDArray[Any] | None = tensor.meta.get(_ARRAY)
    if kept is None:
        kept = tensor.numpy()
        if kept.nbytes <= _SHORT:
            tensor.meta[_ARRAY] = kept
    return kept


def is_constant(value: ir.Value | None) -> bool:
    """Whether the value is constant, without reading its tensor; see `constant`."""
    if value is None:
        return False
    node = value.producer()
    if node is not None:
        return node.op_type == "Constant" and not node.domain
    return value.is_initializer() and value.const_value is not None and not value.is_graph_input()


def integers(value: ir.Value | None) -> tuple[Element, ...] | None:
    """Returns the elements of an integer tensor of rank 0 or 1; None unless all of them are known."""
    if value is None:
        return None
    array = constant(value)
    if array is not None:
        return tuple(int(n) for n in array.ravel()) if array.dtype.kind in "iu" and array.ndim <= 1 else None
    found = elements(value)
    known = tuple(element for element in found or () if element is not None)
    return known if found is not None and len(known) == len(found) and value.dtype is not ir.DataType.BOOL else None


def symbols(expression: str) -> set[str]:
    """Returns the names in an expression over symbolic dimensions, and the text itself, because a name may contain any
    character."""
    return {expression, *re.findall(r"[^\W\d]\w*", expression)}


def dims(value: ir.Value | None) -> tuple[Element | None, ...] | None:
    """Returns the dimensions of a value: integers, expressions, None for an unknown dimension; returns None if the rank
    is unknown. Expressions are canonical (`symbols.canonical`), so that equal expressions are equal texts."""
    shape = value.shape if value is not None else None
    if shape is None:
        return None
    given: list[Element | None] = []  # a loop, for speed: this function is called most often
    for dim in shape:
        if isinstance(dim, int):
            given.append(dim)
        else:
            name = dim.value
            given.append(None if name is None else canonical(name))
    return tuple(given)


def same(a: Sequence[Element | None] | None, b: Sequence[Element | None] | None) -> bool:
    """Whether two shapes are provably equal: known, with the same expression on each axis."""
    return (
        a is not None
        and b is not None
        and len(a) == len(b)
        and all(x == y and x is not None for x, y in zip(a, b, strict=True))
    )


def forget(model: ir.Model) -> None:
    """Removes the notes of shape inference from the metadata, so that they do not get into the file."""
    for node in walk.all_nodes(model):
        for value in node.outputs:
            value.metadata_props.pop(SYM_DATA_KEY, None)
    for graph in walk.graphs(model):
        for value in (*graph.inputs, *graph.initializers.values()):
            value.metadata_props.pop(SYM_DATA_KEY, None)


def integer(node: ir.Node, name: str, default: int | None) -> int | None:
    """Returns an integer attribute. None if it refers to an attribute of a function, or is not an integer: before opset
    6 the dtype of a Cast was a string."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    return None if attribute.is_ref() or attribute.type != ir.AttributeType.INT else attribute.as_int()


def opset(node: ir.Node) -> int:
    """Returns the opset (of ONNX's own domain) of the node; 0 without an import."""
    return node.graph.opset_imports.get("", 0) if node.graph is not None else 0


def spread_opsets(model: ir.Model) -> None:
    """Copies the model's opsets to every branch and loop body. In a file these have no opsets of their own, so opsets
    that an exporter set on them in memory do not count."""
    for graph in walk.graphs(model):
        if graph is not model.graph:
            graph.opset_imports.clear()
            graph.opset_imports.update(model.opset_imports)
