"""Moves and reshapes large constants lazily: nothing is run, and no value is read until the file is written."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.model.graph.contents import DERIVED

_LARGE = 1 << 20
"""Bytes from which a constant is moved lazily. A choice: below, sending it through a runtime is cheap."""
_RESHAPES = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"}


def moved(node: ir.Node, tensor: ir.TensorProtocol) -> ir.TensorProtocol | None:
    """Returns the node's result for a large constant as a tensor that is computed when it is read. None for other
    operators, small constants, dtypes of less than a byte, and unknown shapes."""
    result = node.outputs[0]
    if tensor.nbytes < _LARGE or tensor.dtype.bitwidth < 8 or tensor.dtype == ir.DataType.STRING:
        return None
    if node.op_type in _RESHAPES and result.shape is not None and result.shape.is_static():
        return _lazy(tensor, list(range(len(tensor.shape))), tuple(result.shape.numpy()))
    if node.op_type != "Transpose":
        return None
    perm, shape = _perm(node, len(tensor.shape)), tensor.shape.numpy()
    return None if perm is None else _lazy(tensor, perm, tuple(shape[axis] for axis in perm))


def _perm(node: ir.Node, rank: int) -> list[int] | None:
    given = node.attributes.get("perm")
    if given is None:
        return list(reversed(range(rank)))
    return None if given.is_ref() else list(given.as_ints())


def _lazy(tensor: ir.TensorProtocol, perm: list[int], shape: tuple[int, ...]) -> ir.TensorProtocol:
    def read() -> ir.TensorProtocol:
        array = np.transpose(tensor.numpy(), perm).reshape(shape)
        return ir.Tensor(np.ascontiguousarray(array), dtype=tensor.dtype, name=tensor.name)

    lazy = ir.LazyTensor(read, dtype=tensor.dtype, shape=ir.Shape(shape), name=tensor.name)
    lazy.meta[DERIVED] = True
    return lazy
