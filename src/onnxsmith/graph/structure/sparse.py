"""Checks sparse tensors, reads them as dense tensors, and writes them back unchanged.

Runtimes expand a sparse tensor to a dense tensor when they load a model. Here it is expanded when its values are read,
so that a short file with a huge sparse tensor costs nothing to load."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import name_validation

_MESSAGE = "onnxsmith.sparse"
"""Is the key of a tensor's `meta` that holds the sparse message from which it was read."""
LARGEST = 2**31 - 1
"""Limits the bytes of a dense tensor that is expanded. It is the size limit of a message, which onnxruntime has,
too."""


def check_all(proto: onnx.ModelProto, where: str) -> None:
    """Raises if the coordinates and values of a sparse tensor do not fit its shape. Its two tensor messages must have
    been checked before.

    Raises:
        OnnxsmithError: `model/invalid`.
    """
    for graph in name_validation.all_graphs(proto):
        for message in graph.sparse_initializer:
            _check(message, where)
    for node in name_validation.all_nodes(proto):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name:
                _check(attribute.sparse_tensor, where)


def _check(message: onnx.SparseTensorProto, where: str) -> None:
    wrong = _wrong(message)
    if wrong:
        raise problem(
            "model/invalid",
            "a sparse tensor's data does not fit its shape",
            where=f"{where}, sparse tensor {message.values.name!r}",
            why=wrong,
            fix="the file is damaged, or its writer is wrong: copy or export it again",
        )


def _wrong(message: onnx.SparseTensorProto) -> str:
    values, indices = message.values, message.indices
    if onnx.TensorProto.EXTERNAL in (values.data_location, indices.data_location):
        return "its values lie in another file"
    if not message.dims or min(message.dims) < 0:
        return f"its shape is {list(message.dims)}"
    if len(values.dims) != 1:
        return f"its values have the shape {list(values.dims)}, but must be a list"
    if values.data_type == onnx.TensorProto.STRING:
        return "its values are strings"
    count, rank = values.dims[0], len(message.dims)
    if count and list(indices.dims) not in ([count], [count, rank]):
        return f"{count} values need indices of shape [{count}] or [{count}, {rank}], not {list(indices.dims)}"
    if count and indices.data_type != onnx.TensorProto.INT64:
        return "its indices are not int64"
    if math.prod(message.dims) * ir.DataType(values.data_type).bitwidth > 8 * LARGEST:
        return f"as a dense tensor, {list(message.dims)} would take over {LARGEST:,} bytes"
    if count:
        at = ir.serde.deserialize_tensor(indices).numpy()
        ends = np.asarray(message.dims if at.ndim == 2 else math.prod(message.dims), np.int64)
        if (at < 0).any() or (at >= ends).any():
            return "an index lies outside its shape"
    return ""


def dense(message: onnx.SparseTensorProto) -> ir.LazyTensor:
    """Makes the dense tensor of a message; its values are computed when they are read."""
    dtype, name = ir.DataType(message.values.data_type), message.values.name
    made = ir.LazyTensor(
        lambda: ir.Tensor(_expanded(message), dtype=dtype, name=name),
        dtype=dtype,
        shape=ir.Shape(list(message.dims)),
        name=name,
    )
    made.meta[_MESSAGE] = message
    return made


def _expanded(message: onnx.SparseTensorProto) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    values = ir.serde.deserialize_tensor(message.values).numpy()
    whole = np.zeros(tuple(message.dims), values.dtype)
    if values.size:
        at = ir.serde.deserialize_tensor(message.indices).numpy()
        whole[tuple(at.T) if at.ndim == 2 else np.unravel_index(at, whole.shape)] = values
    return whole


def stored_of(tensor: ir.TensorProtocol | None) -> tuple[int, int] | None:
    """Returns how many values a sparse tensor stores, and the bytes of these and of their coordinates; None for other
    tensors."""
    message = message_of(tensor)
    if message is None:
        return None
    values, places = (ir.serde.deserialize_tensor(one) for one in (message.values, message.indices))
    return values.size, values.nbytes + (places.nbytes if values.size else 0)


def message_of(tensor: ir.TensorProtocol | None) -> onnx.SparseTensorProto | None:
    """Returns the message of a tensor that was read as sparse; None for other tensors."""
    found: onnx.SparseTensorProto | None = None if tensor is None else tensor.meta.get(_MESSAGE)
    return found
