"""The largest distance in units in the last place."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from onnxsmith.verification.metrics.base import Array, Metric

_KINDS = tuple(
    np.dtype(kind)
    for kind in (
        np.float16,
        np.float32,
        np.float64,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)


class Ulp(Metric):
    """The largest distance in units in the last place: how many steps of the dtype lie between the two values.

    Floats of one format are ordered like their bits, apart from the sign. So the distance is a difference of integers,
    also across zero, with +0 and -0 equal (B. Dawson, "Comparing Floating Point Numbers, 2012 Edition"; the same bias
    as in GoogleTest's FloatingPoint). If the sides have two formats, the narrower one counts, and the wider side is
    rounded to it. Complex numbers count by their parts.
    """

    title = "largest distance in units in the last place"
    unit = "ulp"

    def applies(self, reference: Array) -> bool:
        return reference.size > 0 and (reference.dtype in _KINDS or reference.dtype.kind == "c")

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = _parts(reference), _parts(candidate)
        kind = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        with np.errstate(over="ignore"):
            a, b = a.astype(kind, copy=False), b.astype(kind, copy=False)
        both = np.isfinite(a) & np.isfinite(b)
        x, y = _ordered(a[both]), _ordered(b[both])
        return float(np.max(np.where(x > y, x - y, y - x))) if x.size else float("nan")


def _parts(array: Array) -> Array:
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def _ordered(array: Array) -> npt.NDArray[np.uint64]:
    """The rank of each number among all of its format: positive numbers above the middle, negative ones below."""
    bits = array.dtype.itemsize * 8
    codes = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)
    sign = np.uint64(1 << (bits - 1))
    return np.where(codes & sign, sign - (codes & ~sign), codes | sign)
