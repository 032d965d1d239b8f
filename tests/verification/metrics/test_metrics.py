"""Every metric gives what can be worked out by hand, and keeps what `verification/metrics/base.py` promises."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxsmith.verification.metrics.base import measures, members

FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def measure(name: str, a: Any, b: Any, dtype: Any = np.float32) -> float:
    return members()[name].measure(np.array(a, dtype), np.array(b, dtype))


def test_the_members() -> None:
    assert list(members()) == ["cosine", "max-abs", "max-rel", "psnr", "sqnr", "top1", "top5", "ulp"]


# Units in the last place


@pytest.mark.parametrize(
    ("a", "b", "dtype", "wanted"),
    [
        ([1], [1 + 2**-23], np.float32, 1),
        ([1], [1 - 2**-24], np.float32, 1),
        ([1], [1 + 2**-52], np.float64, 1),
        ([1], [1 + 2**-10], np.float16, 1),
        ([1], [1 + 2**-7], ml_dtypes.bfloat16, 1),
        ([1], [1.125], ml_dtypes.float8_e4m3fn, 1),
        ([1, 2], [1, 2], np.float32, 0),
        ([0.0], [-0.0], np.float32, 0),
        ([2**-149], [-(2**-149)], np.float32, 2),
        ([0.0], [2**-149], np.float32, 1),
        ([1], [2], np.float32, 2**23),
        ([-1], [1], np.float16, 2 * 0x3C00),
        ([1, 4], [1 + 2**-23, 4 + 3 * 2**-21], np.float32, 3),
    ],
)
def test_units_in_the_last_place(a: Any, b: Any, dtype: Any, wanted: float) -> None:
    assert measure("ulp", a, b, dtype) == wanted
    assert measure("ulp", b, a, dtype) == wanted


def test_two_formats_count_in_the_narrower_one() -> None:
    a, b = np.array([1 + 2**-30]), np.array([1 + 2**-23], np.float32)
    assert members()["ulp"].measure(a, b) == 1


def test_complex_numbers_count_by_their_parts() -> None:
    assert measure("ulp", [1 + 1j], [1 + (1 + 2**-23) * 1j], np.complex64) == 1


@given(st.sampled_from(FLOATS), st.data())
def test_neighbours_are_one_apart(dtype: Any, data: st.DataObject) -> None:
    value = np.array([data.draw(st.floats(-1e4, 1e4))]).astype(dtype)
    steps = data.draw(st.integers(1, 5))
    other = value
    for _ in range(steps):
        other = np.nextafter(other, np.array(np.inf, dtype))
    passes_zero = bool((value < 0).all() and (other >= 0).all())
    assert members()["ulp"].measure(value, other) in ({steps, steps - 1} if passes_zero else {steps})


# Cosine


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([1, 0], [0, 1], 1),
        ([1, 0], [-2, 0], 2),
        ([1, 2], [10, 20], 0),
        ([0, 0], [0, 0], 0),
        ([0, 0], [1, 0], 1),
        ([1, 0], [0, 0], 1),
        ([1, 0], [1, 1], 1 - math.sqrt(0.5)),
        ([1e300, 0], [1e-300, 0], 0),
    ],
)
def test_cosine_distance(a: Any, b: Any, wanted: float) -> None:
    assert measure("cosine", a, b, np.float64) == pytest.approx(wanted, abs=1e-15)


def test_small_angles_keep_their_digits() -> None:
    assert measure("cosine", [1, 0], [1, 1e-6], np.float64) == pytest.approx(0.5e-12, rel=1e-6)


# Noise


def test_signal_to_noise() -> None:
    assert measure("sqnr", [3, 4], [3, 4.5]) == pytest.approx(20)
    assert measure("sqnr", [3, 4], [3, 4]) == math.inf
    assert measure("sqnr", [0, 0], [0, 1]) == -math.inf
    assert measure("sqnr", [1e300], [1.1e300], np.float64) == pytest.approx(20)
    assert measure("sqnr", [1e308], [-1e308], np.float64) == pytest.approx(-6.0206)


def test_pictures() -> None:
    zeros, ones = np.zeros((1, 2, 2), np.uint8), np.ones((1, 2, 2), np.uint8)
    assert measure("psnr", zeros, ones, np.uint8) == pytest.approx(20 * math.log10(255))
    assert measure("psnr", zeros, zeros, np.uint8) == math.inf
    assert measure("psnr", zeros, ones) == -math.inf
    ramp = np.arange(4).reshape(1, 2, 2)
    assert measure("psnr", ramp, ramp + 1) == pytest.approx(20 * math.log10(3))


# Ranks


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([[1, 2, 3]], [[0, 0, 1]], 1),
        ([[1, 2, 3]], [[0, 2, 1]], 0),
        ([[1, 2, 3], [3, 2, 1]], [[0, 2, 1], [9, 0, 0]], 0.5),
        ([[3, 3, 1]], [[1, 3, 2]], 1),
        ([[3, 3, 1]], [[1, 3, 3]], 1),
        ([[3, 1, 1]], [[1, 3, 3]], 0),
        ([[0, 0, 0]], [[1, 2, 3]], 1),
        ([[1, math.inf, 0]], [[1, 2, 0]], 1),
        ([[1, math.nan, 0], [1, 2, 0]], [[1, 2, 0], [1, 2, 0]], 1),
        ([[math.nan, 1]], [[1, 1]], math.nan),
    ],
)
def test_the_best_one(a: Any, b: Any, wanted: float) -> None:
    assert measure("top1", a, b) == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([6, 5, 4, 3, 2, 1], [2, 3, 4, 5, 6, 1], 1),
        ([6, 5, 4, 3, 2, 1], [6, 5, 4, 3, 1, 2], 0),
        ([6, 5, 4, 3, 2, 2], [6, 5, 4, 3, 1, 2], 1),
        ([6, 5, 4, 2, 2, 2], [6, 5, 4, 2, 2, 2], 1),
        ([6, 5, 4, 4, 4, 4, 0], [0, 5, 6, 6, 6, 6, 6], 0),
        ([0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6], 1),
    ],
)
def test_the_best_five(a: Any, b: Any, wanted: float) -> None:
    assert measure("top5", a, b) == wanted


# All of them

ANY = arrays.arrays(np.float32, arrays.array_shapes(min_dims=1, max_dims=4, max_side=7), elements=st.floats(width=32))


@given(ANY)
def test_equal_arrays_are_the_best_there_is(array: np.ndarray) -> None:
    for name, found in measures(array, array.copy()).items():
        assert found == members()[name].equal or math.isnan(found), name


@given(st.data())
def test_no_measure_is_better_than_that_of_equal_arrays(data: st.DataObject) -> None:
    a = data.draw(ANY)
    b = data.draw(arrays.arrays(np.float32, a.shape, elements=st.floats(width=32)))
    for name, found in measures(a, b).items():
        assert not members()[name].is_worse(members()[name].equal, found), name


@pytest.mark.parametrize(
    "dtype", [*FLOATS, np.int64, np.uint8, np.bool_, np.complex64, ml_dtypes.int4, ml_dtypes.float8_e5m2]
)
def test_every_dtype_is_measured(dtype: Any) -> None:
    a = np.array([[[0, 1, 1, 0, 1, 0, 1]] * 2]).astype(dtype)
    b = np.array([[[0, 1, 0, 0, 1, 1, 1]] * 2]).astype(dtype)
    found = measures(a, b)
    assert {"max-abs", "max-rel", "cosine", "sqnr"} <= found.keys()
    assert found["max-abs"] == 1
    assert ("ulp" in found) == (np.dtype(dtype) in [*FLOATS, np.complex64, ml_dtypes.float8_e5m2])


def test_what_has_no_numbers_has_no_measures() -> None:
    assert measures(np.array(["a"], object), np.array(["b"], object)) == {}
    assert measures(np.zeros((0, 3)), np.zeros((0, 3))) == {}


def test_what_is_not_finite_is_left_out() -> None:
    a, b = np.array([np.nan, np.inf, 1, 2]), np.array([np.nan, -np.inf, 1, 3])
    found = measures(a, b)
    assert (found["max-abs"], found["ulp"]) == (1, 2**51)
    assert math.isnan(measures(a[:2], b[:2])["max-abs"])


def test_decibels_are_worse_when_smaller() -> None:
    known = members()
    assert known["sqnr"].is_worse(10, 20)
    assert not known["sqnr"].is_worse(math.inf, 20)
    assert known["max-abs"].is_worse(2, 1)
    assert not known["max-abs"].is_worse(math.nan, 1)
