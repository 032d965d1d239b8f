"""Moves and reshapes constants without a runtime: small ones at once, large ones when the file is written."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.tensor_keys import DERIVED

_LARGE = 1 << 20
"""Constants of at least this many bytes are moved lazily. A choice: smaller copies in memory are cheap."""
_RESHAPES = frozenset(("Flatten", "Reshape", "Squeeze", "Unsqueeze"))
_MOVING = _RESHAPES | {"Transpose"}


def moved(node: ir.Node, tensor: ir.TensorProtocol) -> ir.TensorProtocol | None:
    """Returns the node's result for a constant. The result for a large constant is computed when it is read. Returns
    None for other operators, dtypes of less than a byte, and unknown shapes."""
    if node.op_type not in _MOVING or tensor.dtype.bitwidth < 8 or tensor.dtype == ir.DataType.STRING:
        return None
    result = node.outputs[0]
    if node.op_type in _RESHAPES:
        if result.shape is None or not result.shape.is_static():
            return None
        shape = tuple(result.shape.numpy())
        return _moved(tensor, None, shape) if math.prod(shape) == tensor.size else None
    perm, sizes = _perm(node, len(tensor.shape)), tensor.shape.numpy()
    return None if perm is None else _moved(tensor, perm, tuple(sizes[axis] for axis in perm))


def is_lazy(tensor: ir.TensorProtocol) -> bool:
    """Whether the tensor is computed when it is read."""
    return DERIVED in tensor.meta


def _perm(node: ir.Node, rank: int) -> list[int] | None:
    """Returns the permutation of the axes; None if it is unknown or invalid."""
    given = node.attributes.get("perm")
    if given is None:
        return list(reversed(range(rank)))
    perm = None if given.is_ref() else list(given.as_ints())
    return perm if perm is not None and sorted(perm) == list(range(rank)) else None


def _moved(tensor: ir.TensorProtocol, perm: list[int] | None, shape: tuple[int, ...]) -> ir.TensorProtocol:
    def read() -> ir.TensorProtocol:
        array = tensor.numpy() if perm is None else np.transpose(tensor.numpy(), perm)
        return ir.Tensor(np.array(array.reshape(shape), order="C"), dtype=tensor.dtype, name=tensor.name)

    if tensor.nbytes < _LARGE:
        return read()
    lazy = ir.LazyTensor(read, dtype=tensor.dtype, shape=ir.Shape(shape), name=tensor.name)
    lazy.meta[DERIVED] = True
    return lazy
