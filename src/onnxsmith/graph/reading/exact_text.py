"""Writes types, attributes and elements as exact text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.words import several
from onnxsmith.graph.reading.weights import place, readable
from onnxsmith.graph.structure import type_texts, walk
from onnxsmith.graph.structure.walk import op_name

FIRST = 64
"""Limits the elements of a tensor, or items of an attribute, that are shown. A choice: a few lines."""


@dataclass(frozen=True)
class Style:
    """How types are written: `names` for dtypes whose names differ from ONNX's, and the separator between two sizes."""

    names: Mapping[ir.DataType, str]
    between: str


ONNX = Style({}, ",")
"""Writes types as ONNX text does: `float[N,3]`."""


def value_type(value: ir.Value | None, style: Style = ONNX) -> str:
    """Returns the dtype and shape of a value: `float[N,3]`, `sequence(float[?])`; `map(int64, tensor(float))` as
    declared, for a type without a dtype; "" if dtype and shape are unknown."""
    if value is None:
        return ""
    if value.type is None and value.const_value is not None:
        return tensor_type(value.const_value, style)
    if value.type is None and (declared := type_texts.type_text(value)):
        return declared.replace(",", style.between)
    return type_text(value.type, value.shape, style)


def tensor_type(tensor: ir.TensorProtocol, style: Style = ONNX) -> str:
    """Returns the dtype and shape of a tensor: `bfloat16[64,3]`."""
    return f"{dtype_name(tensor.dtype, style)}{_shape(tensor.shape, style)}"


def dtype_name(dtype: ir.DataType | None, style: Style = ONNX) -> str:
    """Returns the name of a dtype, by default the ONNX name in lower case; `?` if unknown."""
    if dtype is None or dtype == ir.DataType.UNDEFINED:
        return "?"
    return style.names.get(dtype) or dtype.name.lower()


def type_text(type_: ir.TypeProtocol | None, shape: ir.ShapeProtocol | None, style: Style = ONNX) -> str:
    """Returns a type as text, with the shape of its innermost tensor."""
    if type_ is None:
        return "" if shape is None else f"?{_shape(shape, style)}"
    if type(type_) is ir.TensorType:  # nearly all are; the checks below are slow
        return f"{dtype_name(type_.dtype, style)}{_shape(shape, style)}"
    if isinstance(type_, ir.SequenceType):
        return f"sequence({type_text(type_.elem_type, shape, style)})"
    if isinstance(type_, ir.OptionalType):
        return f"optional({type_text(type_.elem_type, shape, style)})"
    text = f"{dtype_name(type_.dtype, style)}{_shape(shape, style)}"
    return f"sparse({text})" if isinstance(type_, ir.SparseTensorType) else text


def _shape(shape: ir.ShapeProtocol | None, style: Style) -> str:
    if shape is None:
        return ""
    return f"[{style.between.join(_dim(dim) for dim in shape)}]"


def _dim(dim: Any) -> str:
    return str(dim) if isinstance(dim, int) else str(dim.value or "?")


def elements(tensor: ir.TensorProtocol, limit: int = FIRST) -> tuple[str, ...]:
    """Returns the first elements in row-major order, as texts that read back as the same numbers.

    Raises:
        OSError, ValueError: when the values cannot be read.
    """
    if isinstance(tensor, ir.StringTensor):
        return tuple(_text(item) for item in islice(tensor.string_data(), limit))
    return tuple(_element(item) for item in flat(tensor)[:limit])


def flat(tensor: ir.TensorProtocol) -> npt.NDArray[Any]:
    """Returns the elements in row-major order as a vector; a view if possible."""
    return np.asarray(tensor.numpy()).reshape(-1)


def _text(item: bytes) -> str:
    try:
        return repr(item.decode())
    except UnicodeDecodeError:
        return repr(item)


def _element(item: Any) -> str:
    """Returns an element of any dtype as text. Dtypes of ml_dtypes are widened to float32, which is exact."""
    kind = ir.DataType.from_numpy(item.dtype)
    if kind == ir.DataType.BOOL:
        return str(bool(item)).lower()
    if kind.is_integer():
        return str(int(item))
    if kind.is_floating_point():
        return repr(float(item))
    return repr(complex(item))


def attribute_text(attribute: ir.Attr) -> str:
    """Writes an attribute's value, of any type."""
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}, an attribute of the function"
    value, kinds = attribute.value, ir.AttributeType
    if value is None:
        return ""
    match attribute.type:
        case kinds.FLOAT:
            return _float(value)
        case kinds.FLOATS:
            return _listing(_float(item) for item in value)
        case kinds.STRING | kinds.INT:
            return repr(value)
        case kinds.STRINGS | kinds.INTS:
            return _listing(repr(item) for item in value)
        case kinds.TENSOR:
            return _tensor(value)
        case kinds.TENSORS:
            return _listing(_tensor(item) for item in value)
        case kinds.GRAPH:
            return _graph(value)
        case kinds.GRAPHS:
            return _listing(_graph(item) for item in value)
        case kinds.TYPE_PROTO:
            return type_text(value.type, value.shape)
        case kinds.TYPE_PROTOS:
            return _listing(type_text(item.type, item.shape) for item in value)
        case _:
            return str(value)


def _float(value: float) -> str:
    """Returns the shortest decimal with the same float32 value; the file stores float32."""
    with np.errstate(over="ignore"):
        return str(np.float32(value))


def _listing(texts: Iterable[str]) -> str:
    items = list(texts)
    more = [f"… {len(items) - FIRST:,} more"] if len(items) > FIRST else []
    return f"[{', '.join([*items[:FIRST], *more])}]"


def _tensor(tensor: ir.TensorProtocol) -> str:
    kind = tensor_type(tensor)
    if not readable(tensor):
        return f"{kind} ({place(tensor)})"
    try:
        items = list(elements(tensor))
    except (OSError, ValueError) as error:
        return f"{kind} (unreadable: {error})"
    if tensor.size > FIRST:
        items.append(f"… {tensor.size - FIRST:,} more")
    return f"{kind} {{{', '.join(items)}}}"


def _graph(graph: ir.Graph) -> str:
    ops = Counter(op_name(node) for node in walk.nodes(graph))
    kinds = ", ".join(f"{count} {op}" for op, count in ops.most_common(5))
    head = f"graph {graph.name!r}: " if graph.name else "graph: "
    ports = f"({', '.join(v.name or '' for v in graph.inputs)}) => ({', '.join(v.name or '' for v in graph.outputs)})"
    return f"{head}{ports}, {several(sum(ops.values()), 'node')}{f' ({kinds})' if kinds else ''}"
