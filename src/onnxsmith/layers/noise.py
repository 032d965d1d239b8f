"""Tells an error from the rounding of a coarse dtype behind which it hides.

Behind a Cast to float16 two right computations may differ by a whole step of float16 in a few elements, where the
value lay near the edge of two; an error far below that step moves many. So what came out is held to what comes out
when the tensor that is suspected has the error that rounding explains, and no other.
"""

from __future__ import annotations

import zlib

import numpy as np

from onnxsmith.comparison.rounding import FACTOR, Rounding, counted
from onnxsmith.comparison.tensors import is_float
from onnxsmith.metrics.base import widen
from onnxsmith.metrics.max_rel import rms
from onnxsmith.runtimes.base import Value

FINE = 2.0**-24
"""Unit roundoff of float32: what is rounded no coarser needs no such look."""


def shaken(value: Value, rounding: Rounding, name: str) -> Value:
    """The value with a random error of the size that rounding explains, relative to its scale."""
    if not isinstance(value, np.ndarray) or not is_float(value) or value.dtype.kind == "c" or value.size == 0:
        return value
    wide = widen(value)
    if not np.isfinite(wide).all():
        return value
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(value.shape)
    noise = rounding.tolerance / FACTOR * (rms(wide) + np.abs(wide)) * drawn
    return np.asarray((wide + noise).astype(value.dtype))


def stands_out(reference: Value, computed: Value, noisy: Value, rounding: Rounding) -> bool:
    """Whether `computed` is further from the reference, in root mean square, than noise and rounding in float32 bring
    it."""
    values = (reference, computed, noisy)
    if not all(isinstance(value, np.ndarray) and is_float(value) and value.size for value in values):
        return False
    truth, found, usual = (widen(np.asarray(value)) for value in values)
    if not all(np.isfinite(one).all() for one in (truth, found, usual)):
        return False
    fine = counted(rounding.terms, rounding.depth, min(rounding.unit, FINE)).tolerance * rms(truth)
    return rms(found - truth) > max(FACTOR * rms(usual - truth), fine)
