"""Compares the constants of a model with those of a pattern, and with each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.patterns.pattern import Exact, Kind, Number, Numbers
from onnxsmith.graph.shapes import facts

Array = npt.NDArray[Any]


def number_of_elements(value: ir.Value) -> int | None:
    """Returns the number of elements of a constant, without reading them; None if the value is not constant."""
    tensor = const_tensor(value) if facts.is_constant(value) else None
    return None if tensor is None else math.prod(tensor.shape.numpy())


def is_kind(value: ir.Value, kind: Kind) -> bool:
    """Whether a variable of this kind may stand for the value."""
    if kind is Kind.VALUE:
        return True
    if kind is Kind.SCALAR:
        return number_of_elements(value) == 1
    return facts.is_constant(value) and const_tensor(value) is not None


def equals(value: ir.Value, wanted: Number | Numbers | Exact) -> bool:
    """Whether the value is the constant that a pattern writes out."""
    count = number_of_elements(value)
    least = 1 if isinstance(wanted, Number) else len(wanted.values)
    if count != least:
        return False
    array = facts.constant(value)
    assert array is not None
    if isinstance(wanted, Exact):
        return value_dtype(value) is wanted.dtype and array.shape == wanted.shape and _alike(array, wanted.array)
    if isinstance(wanted, Number):
        return is_number(array.ravel()[0], array.dtype, wanted.value, wanted.rel)
    return array.ndim == 1 and all(
        is_number(one, array.dtype, number) for one, number in zip(array, wanted.values, strict=True)
    )


def value_dtype(value: ir.Value) -> ir.DataType | None:
    """Returns the dtype of a constant."""
    tensor = const_tensor(value)
    return None if tensor is None else tensor.dtype


def is_number(element: Any, dtype: np.dtype[Any], wanted: float | bool, rel: float = 0.0) -> bool:
    """Whether an element equals this number after rounding to the dtype, or within the relative tolerance `rel`."""
    if isinstance(wanted, bool) or dtype.kind == "b":
        return isinstance(wanted, bool) and dtype.kind == "b" and bool(element) == wanted
    try:
        found = complex(element) if dtype.kind == "c" else float(element) if dtype.kind not in "iu" else int(element)
    except (TypeError, ValueError):  # a text
        return False
    if isinstance(found, int):
        return found == wanted if not rel else abs(found - wanted) <= rel * abs(wanted)
    if isinstance(wanted, float) and math.isnan(wanted):
        return found != found
    if rel:
        return found == wanted or abs(found - wanted) <= rel * abs(wanted)
    if found == wanted:
        return True
    with np.errstate(all="ignore"):
        rounded = np.asarray(wanted).astype(dtype)
    return bool(np.isfinite(rounded) == np.isfinite(wanted)) and bool(rounded == element)


def same(a: ir.Value, b: ir.Value, kind: Kind = Kind.VALUE) -> bool:
    """Whether two values are identical, or equal constants. Constants are equal if their dtypes, shapes and bits are
    equal. The shape of scalars does not count."""
    if a is b:
        return True
    first, second = number_of_elements(a), number_of_elements(b)
    if first is None or first != second or value_dtype(a) is not value_dtype(b):
        return False
    x, y = facts.constant(a), facts.constant(b)
    return x is not None and y is not None and (kind is Kind.SCALAR or x.shape == y.shape) and _alike(x, y)


def _alike(a: Array, b: Array) -> bool:
    """Whether two arrays of the same dtype have the same bits."""
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return [_bytes(one) for one in a.ravel()] == [_bytes(one) for one in b.ravel()]
    return a.tobytes() == b.tobytes()


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()
