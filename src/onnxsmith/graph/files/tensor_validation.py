"""Checks that every tensor message of a model holds as much data as its shape and dtype need."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import onnx
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure.name_validation import subgraphs

_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_NUMBERS_IN = {
    "float_data": {"FLOAT", "COMPLEX64"},
    "int64_data": {"INT64"},
    "double_data": {"DOUBLE", "COMPLEX128"},
    "uint64_data": {"UINT32", "UINT64"},
    "string_data": {"STRING"},
}
"""Maps fields to the dtypes that they may hold, from onnx.proto. `int32_data` may hold all other dtypes of at most 32
bits."""


_HOLDING = frozenset(
    (
        *(onnx.AttributeProto.TENSOR, onnx.AttributeProto.TENSORS, onnx.AttributeProto.SPARSE_TENSOR),
        *(onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS),
    )
)
"""Lists the attribute types that hold tensors, or graphs, in which tensors may be."""


def tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yields every tensor: initializers and attributes, also of subgraphs and functions."""
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        yield from _attribute_tensors(function.attribute_proto)
        yield from _node_tensors(function.node)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        if any(attribute.type in _HOLDING for attribute in node.attribute):  # most nodes hold neither
            yield from _attribute_tensors(node.attribute)
            for inner in subgraphs(node):
                yield from _graph_tensors(inner)


def _attribute_tensors(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.type == onnx.AttributeProto.TENSOR and not attribute.ref_attr_name:
            yield attribute.t
        elif attribute.type == onnx.AttributeProto.TENSORS:
            yield from attribute.tensors
        elif attribute.type == onnx.AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name:
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def nbytes(tensor: onnx.TensorProto) -> int:
    """Returns the bytes of the tensor's values, packed as the format says.

    Raises:
        ValueError: when its dtype has no fixed size, is unknown, or a dimension is negative.
    """
    return -(-_dtype(tensor).bitwidth * _size(tensor) // 8)


def check(proto: onnx.ModelProto, where: str) -> list[onnx.TensorProto]:
    """Raises if a tensor inside the file holds more or less data than its shape and dtype need. Then the file is
    usually damaged. Returns the tensors whose data is outside the file, for `external.check`.

    Raises:
        OnnxsmithError: `model/invalid`.
    """
    outside: list[onnx.TensorProto] = []
    for tensor in tensors(proto):
        try:
            wrong = _bad_text(tensor)
            if not wrong and tensor.data_location != onnx.TensorProto.EXTERNAL:
                wrong = _wrong(tensor)
            elif not wrong:
                outside.append(tensor)
        except (ValueError, TypeError) as error:
            wrong = str(error)
        if wrong:
            raise problem(
                "model/invalid",
                "a tensor's data does not fit its shape and dtype",
                where=f"{where}, tensor {tensor.name!r}",
                why=wrong,
                fix="the file is damaged, or its writer is wrong: copy or export it again",
            )
    return outside


def _bad_text(tensor: onnx.TensorProto) -> str:
    texts: list[object] = [tensor.name, tensor.doc_string]
    for entry in itertools.chain(tensor.metadata_props, tensor.external_data):
        texts += (entry.key, entry.value)
    return (
        ("the name or description of the tensor is not UTF-8") if any(isinstance(text, bytes) for text in texts) else ""
    )


def _wrong(tensor: onnx.TensorProto) -> str:
    dtype = _dtype(tensor)
    filled = [name for name in _FIELDS if len(getattr(tensor, name))]
    if tensor.HasField("raw_data"):
        if dtype == ir.DataType.STRING:
            return "strings cannot be raw data"
        held, needed, unit = len(tensor.raw_data), nbytes(tensor), "bytes"
        if filled:
            return f"the tensor has both raw_data and {filled[0]}"
    else:
        held, needed, unit = 0, _size(tensor), "elements"
        if len(filled) > 1:
            return f"it has {' and '.join(filled)}"
        if filled:
            if not _may_hold(filled[0], dtype):
                return f"{filled[0]} cannot hold {dtype.name.lower()}"
            held, needed = len(getattr(tensor, filled[0])), _numbers(dtype, needed)
    return (
        ""
        if held == needed
        else f"the tensor has {held:,} {unit}, but {list(tensor.dims)} of {dtype.name.lower()} need {needed:,}"
    )


def _dtype(tensor: onnx.TensorProto) -> ir.DataType:
    dtype = ir.DataType(tensor.data_type)
    if dtype == ir.DataType.UNDEFINED:
        raise ValueError("the tensor has no dtype")
    return dtype


def _size(tensor: onnx.TensorProto) -> int:
    if any(dim < 0 for dim in tensor.dims):
        raise ValueError(f"negative dimension in {list(tensor.dims)}")
    return math.prod(tensor.dims)


def _may_hold(field: str, dtype: ir.DataType) -> bool:
    if field in _NUMBERS_IN:
        return dtype.name in _NUMBERS_IN[field]
    return dtype != ir.DataType.STRING and dtype.bitwidth <= 32 and dtype.name not in ("FLOAT", "UINT32")


def _numbers(dtype: ir.DataType, size: int) -> int:
    """Returns how many numbers of a typed field `size` elements take. A complex element takes two; several elements of
    fewer than 8 bits share one."""
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return 2 * size
    if dtype != ir.DataType.STRING and dtype.bitwidth in (2, 4):
        return -(-dtype.bitwidth * size // 8)
    return size
