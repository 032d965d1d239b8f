"""Makes tensors from Python numbers, lists and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators.dtypes import shown

_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_USUAL = {
    "b": (ir.DataType.BOOL,),
    "i": (*_INTEGERS, *_FLOATS),
    "f": _FLOATS,
    "s": (ir.DataType.STRING,),
}
"""Lists by kind of Python value the dtypes to try, in order, if nothing demands a dtype. The first that the operator
allows is used."""
_KINDS = {"b": "bool", "i": "whole number", "f": "float", "s": "text"}


def is_python(given: Any) -> bool:
    """Whether a value has no dtype of its own: a Python number or text, or a list of them.

    np.float64 counts, too: it is a subclass of float, and `np.sqrt(64)` returns one.
    """
    if isinstance(given, list | tuple):
        return all(is_python(one) for one in given)
    return isinstance(given, bool | int | float | str | bytes) and not isinstance(given, ir.DataType)


def is_array(given: Any) -> bool:
    """Whether a value has a dtype of its own: an array, a numpy scalar or a tensor of onnx-ir."""
    return isinstance(given, np.ndarray | np.generic | ir.TensorProtocol) and not is_python(given)


def kind_of(given: Any) -> str:
    """Returns the kind of a Python value: `b`, `i`, `f` or `s`. For a list returns the widest kind; "" for an empty
    list.

    Raises:
        ValueError: if a list mixes texts or bools with numbers.
    """
    if isinstance(given, list | tuple):
        kinds = {kind for kind in map(kind_of, given) if kind}
        if kinds == {"i", "f"}:
            return "f"
        if len(kinds) > 1:
            raise ValueError("a list that mixes " + " and ".join(sorted(_KINDS[kind] for kind in kinds)))
        return next(iter(kinds), "")
    if isinstance(given, bool | np.bool_):
        return "b"
    if isinstance(given, int):
        return "i"
    return "f" if isinstance(given, float) else "s"


def usual(given: Any, allowed: frozenset[str]) -> ir.DataType | None:
    """Returns the dtype that a Python value gets if nothing demands a dtype; None if no usual dtype is allowed."""
    wishes = _USUAL.get(kind_of(given), (ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.STRING))
    return next((dtype for dtype in wishes if not allowed or f"tensor({dtype.name.lower()})" in allowed), None)


def of_array(given: Any, what: str, where: str) -> ir.TensorProtocol:
    """Makes a tensor from an array. The array is copied, because its owner may change it later.

    Raises:
        OnnxsmithError: `build/constant` if ONNX has no such dtype.
    """
    if isinstance(given, ir.TensorProtocol):
        return given
    array = np.asarray(given)
    if array.dtype.kind in "US":
        return ir.StringTensor(np.vectorize(_encoded, otypes=[object])(array) if array.size else array.astype(object))
    if array.dtype.kind == "O":
        flat = array.ravel().tolist()
        if all(isinstance(text, str | bytes) for text in flat):
            encoded = np.empty(array.shape, object)
            encoded.ravel()[:] = [_encoded(text) for text in flat]
            return ir.StringTensor(encoded)
        raise _bad(what, "an array of Python objects", where, "give an array of numbers or of texts")
    try:
        dtype = ir.DataType.from_numpy(array.dtype)
    except TypeError as error:
        raise _bad(what, f"an array of {array.dtype}", where, "convert it: array.astype(np.float32)") from error
    return ir.Tensor(np.array(array, order="C", copy=True), dtype=dtype)


def of_python(given: Any, dtype: ir.DataType, what: str, where: str) -> ir.TensorProtocol:
    """Makes a tensor of `dtype` from a Python number, text, or (nested) list.

    Raises:
        OnnxsmithError: `build/constant` if the dtype cannot hold the value: 1.5 as int64, 300 as uint8.
    """
    try:
        kind = kind_of(given)
    except ValueError as error:
        raise _bad(what, str(error), where, _apart(given)) from error
    if dtype == ir.DataType.STRING:
        if kind not in ("s", ""):
            raise _misfit(given, kind, dtype, what, where)
        return of_array(_ragged_checked(given, object, what, where), what, where)
    if kind == "s" and isinstance(given, list | tuple) and not dtype.is_floating_point():
        raise _bad(what, repr(given), where, _apart(given))
    if (
        kind == "s"
        or (kind == "b") != (dtype == ir.DataType.BOOL and kind != "")
        or (
            kind == "f"
            and not dtype.is_floating_point()
            and dtype not in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)
        )
    ):
        raise _misfit(given, kind, dtype, what, where)
    wide: Any = {"b": np.bool_, "i": object, "f": np.float64}.get(kind, np.float64)
    array = _ragged_checked(given, wide, what, where)
    if kind == "i":
        array = _integers(array, given, dtype, what, where)
    with np.errstate(all="ignore"):
        made = array.astype(dtype.numpy())
    if dtype.is_floating_point() and not np.array_equal(np.isfinite(array), np.isfinite(made.astype(np.float64))):
        raise _bad(what, f"{given!r}, which is beyond the range of {shown(dtype)}", where, "give a smaller number")
    return ir.Tensor(made, dtype=dtype)


def _integers(array: npt.NDArray[Any], given: Any, dtype: ir.DataType, what: str, where: str) -> npt.NDArray[Any]:
    if dtype.is_floating_point() or dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return array.astype(np.float64)
    bits = int(dtype.bitwidth)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed() else (0, 2**bits - 1)
    if any(not low <= number <= high for number in array.ravel().tolist()):
        raise _bad(what, f"{given!r}, which is beyond the range of {shown(dtype)}", where, f"give {low} to {high}")
    return array.astype(np.uint64 if not dtype.is_signed() else np.int64)


def _ragged_checked(given: Any, dtype: Any, what: str, where: str) -> npt.NDArray[Any]:
    """Makes an array, and refuses lists of different lengths."""
    lengths = _lengths(given)
    if lengths is None:
        raise _bad(what, "lists of different lengths", where, "give lists of one length, or one array")
    made = np.empty(lengths, object)
    flat: list[Any] = []
    _flatten(given, flat)
    made.ravel()[:] = flat
    return made.astype(dtype)


def _lengths(given: Any) -> tuple[int, ...] | None:
    if not isinstance(given, list | tuple):
        return ()
    inner = {_lengths(one) for one in given}
    if len(inner) > 1 or None in inner:
        return None
    return (len(given), *(next(iter(inner)) or ())) if inner else (0,)


def _flatten(given: Any, into: list[Any]) -> None:
    if not isinstance(given, list | tuple):
        into.append(given)
        return
    for one in given:
        _flatten(one, into)


def _apart(given: Any) -> str:
    """Returns the fix for a list with texts among numbers. The text is mostly the name of a dimension, from
    `x.shape`."""
    texts = [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []
    if not texts:
        return "give values of one kind"
    return (
        f"give values of one kind; for the size {texts[0]!r}, known at run time only, write g.Shape(x)[axis]; "
        "in the shape of Reshape, 0 copies the size of the same axis and -1 stands for the rest"
    )


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _misfit(given: Any, kind: str, dtype: ir.DataType, what: str, where: str) -> OnnxsmithError:
    return _bad(
        what,
        f"{given!r}, a {_KINDS[kind]}, where {shown(dtype)} is expected",
        where,
        f'give a value of {shown(dtype)}, or convert the tensor first: g.Cast(tensor, to="…")',
    )


def _bad(what: str, was: str, where: str, fix: str) -> OnnxsmithError:
    return problem("build/constant", f"{what} is {was}", where=where, fix=fix)
