"""Distinguishes an error from the rounding of a coarse dtype or of a quantiser, because the rounding may hide the
error.

After a Cast to float16, two correct computations may differ by a whole step of float16 in a few elements, whose values
lie near the boundary of two steps. A fault far smaller than a step changes many elements. So random noise of the size
that rounding explains is added to the suspected tensor. The candidate's result is compared with the result that follows
from the noisy tensor.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from onnxsmith.runtimes.base import Value
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.rounding import FACTOR, Rounding, counted
from onnxsmith.verification.value_comparison import is_float

_SPREAD = 3.0
"""Limits the root mean square error of quantisers, in multiples of the error that follows from their steps. A
choice."""
FINE = 2.0**-24
"""Holds the unit roundoff of float32: only coarser dtypes need the comparison with noise."""


def with_noise(value: Value, rounding: Rounding, name: str) -> Value:
    """Returns the value with a random error of the size that rounding explains, relative to its scale."""
    if not isinstance(value, np.ndarray) or not is_float(value) or value.dtype.kind == "c" or value.size == 0:
        return value
    wide = widen(value)
    if not np.isfinite(wide).all():
        return value
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(value.shape)
    noise = rounding.tolerance / FACTOR * (rms(wide) + np.abs(wide)) * drawn
    return np.asarray((wide + noise).astype(value.dtype))


def stands_out(reference: Value, computed: Value, noisy: Value, rounding: Rounding) -> bool:
    """Whether `computed` is further from the reference, in root mean square, than noise and float32 rounding."""
    values = (reference, computed, noisy)
    if not all(isinstance(value, np.ndarray) and is_float(value) and value.size for value in values):
        return False
    truth, found, usual = (widen(np.asarray(value)) for value in values)
    if not all(np.isfinite(one).all() for one in (truth, found, usual)):
        return False
    fine = counted(rounding.terms, rounding.depth, min(rounding.unit, FINE)).tolerance * rms(truth)
    return rms(found - truth) > max(FACTOR * rms(usual - truth), fine)


def beyond_noise(reference: Value, computed: Value, rounding: Rounding) -> str:
    """Returns why quantisation error does not explain a difference that is everywhere within its largest size, or "".

    Quantisation error is positive as often as negative. So its root mean square over all elements follows from the
    steps, and it hardly correlates with the values. An error in a scale correlates with the values.
    """
    if not rounding.noise or rounding.given is not None:
        return ""
    if not isinstance(reference, np.ndarray) or not isinstance(computed, np.ndarray) or not is_float(reference):
        return ""
    truth, found = widen(reference).ravel(), widen(computed).ravel()
    if truth.size < _MANY or not (np.isfinite(truth).all() and np.isfinite(found).all()):
        return ""
    apart, scale = found - truth, rms(truth)
    if not scale:
        return ""
    usual = rounding.noise + replace(rounding, noise=0.0).tolerance
    spread, factor = rms(apart) / scale, float(truth @ apart) / float(truth @ truth)
    if spread > _SPREAD * usual:
        return (
            f"its elements are {spread:.2g} of its scale off in root mean square, where quantisers explain {usual:.2g}"
        )
    if abs(factor) > usual:
        return f"it is {1 + factor:.4g} times the reference, where quantisers explain {usual:.2g} more or less"
    return ""


_MANY = 32
"""Names the number of elements from which the statistics are meaningful. A choice: with fewer elements, chance may add
up."""
