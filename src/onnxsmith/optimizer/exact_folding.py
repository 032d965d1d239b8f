"""Computes small constants without a runtime, if the standard determines every bit of the result.

Starting a runtime takes longer than simplifying most models, and many models have only a few numbers to compute: the
root of a head's size, a cast. Operations that IEEE 754 rounds correctly, and operations without arithmetic, give the
same result in every runtime. All other operations are left to a runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]

_MOST = 1 << 16
"""Bytes of the largest operand and result. A choice: for larger ones, starting a runtime costs less than the
arithmetic."""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_NUMBERS = (*_FLOATS, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)


def computed(node: ir.Node, operands: Sequence[ir.TensorProtocol | None]) -> ir.TensorProtocol | None:
    """Returns the result of a node with these operands. Returns None if it is left to a runtime: for other operators
    and dtypes, large tensors, attributes of older opsets, NaN results (whose bits the standard does not fix) and
    conversions out of range."""
    rule, dtype = _RULES.get(node.op_type), node.outputs[0].dtype
    given = [one for one in operands if one is not None]
    if rule is None or dtype not in _NUMBERS or len(given) != len(operands) or not given:
        return None
    if any(one.dtype not in _NUMBERS or one.nbytes > _MOST for one in given):
        return None
    if any(name not in ("to", "saturate") for name in node.attributes):
        return None
    with np.errstate(all="ignore"):
        found = rule([one.numpy() for one in given], dtype)
    if found is None or found.nbytes > _MOST or found.dtype != dtype.numpy():
        return None
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        return None
    return ir.Tensor(np.array(found, order="C"))


def _arithmetic(operation: Callable[[Array, Array], Array]) -> Callable[[Sequence[Array], ir.DataType], Array | None]:
    """Returns a function that computes the operation on floats, which IEEE 754 rounds correctly. It returns None for
    integers, which may overflow."""

    def rule(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
        if len(operands) != 2 or dtype not in _FLOATS or any(one.dtype != dtype.numpy() for one in operands):
            return None
        return np.asarray(operation(*operands)) if _broadcast_bytes(operands) <= _MOST else None

    return rule


def _broadcast_bytes(operands: Sequence[Array]) -> int:
    try:
        shape = np.broadcast_shapes(*(one.shape for one in operands))
    except ValueError:
        return _MOST + 1
    return int(np.prod(shape, dtype=np.float64)) * operands[0].itemsize


def _sqrt(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
    """Returns the square root, which IEEE 754 rounds correctly."""
    same = len(operands) == 1 and dtype in _FLOATS and operands[0].dtype == dtype.numpy()
    return np.asarray(np.sqrt(operands[0])) if same else None


def _cast(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
    """Casts a float to an integer that can hold it, rounding towards zero, or a number to a float, rounding to
    nearest."""
    source, kind = operands[0], dtype.numpy()
    if kind.kind == "i" and source.size:
        limits = np.iinfo(kind)
        fits = np.isfinite(source) & (source >= limits.min) & (source <= limits.max // 2)
        if not fits.all():
            return None
    return np.asarray(source != 0) if kind.kind == "b" else source.astype(kind)


def _expand(operands: Sequence[Array], _: ir.DataType) -> Array | None:
    if len(operands) != 2 or operands[1].ndim != 1 or operands[1].dtype != np.int64 or (operands[1] < 0).any():
        return None
    sizes = tuple(operands[1].tolist())
    wide = np.broadcast_to(np.zeros((), operands[0].dtype), sizes)  # a view, which takes no memory
    return np.broadcast_arrays(operands[0], wide)[0] if _broadcast_bytes([operands[0], wide]) <= _MOST else None


_RULES: dict[str, Callable[[Sequence[Array], ir.DataType], Array | None]] = {
    "Add": _arithmetic(np.add),
    "Cast": _cast,
    "CastLike": _cast,
    "Div": _arithmetic(np.divide),
    "Expand": _expand,
    "Mul": _arithmetic(np.multiply),
    "Sqrt": _sqrt,
    "Sub": _arithmetic(np.subtract),
}
