"""Two values held to each other, piece by piece."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxsmith.verification.value_comparison import difference, is_float, layout_difference, unit

SIZE = 100_003
"""More than one piece, and no multiple of one."""
DTYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.complex64)


def drawn(dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(SIZE)
    return (values + 1j * rng.standard_normal(SIZE) if dtype is np.complex64 else values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_measures_are_those_of_the_whole(dtype: Any) -> None:
    a, b = drawn(dtype), drawn(dtype, 1)
    found = difference(a, b, 1e-3)
    x, y = (np.stack([v.real, v.imag]).astype("d") if dtype is np.complex64 else v.astype("d") for v in (a, b))
    scale = np.sqrt(np.mean(x**2))
    assert found.scale == pytest.approx(scale, rel=1e-12)
    assert found.worst_abs == np.max(np.abs(x - y))
    assert found.worst_rel == pytest.approx(np.max(np.abs(x - y) / (scale + np.abs(x))), rel=1e-12)
    over = int(np.sum(np.abs(x - y) > 1e-3 * (scale + np.abs(x))))
    assert found.reason.startswith(f"{over} of {x.size} elements")
    assert found.compared == x.size


@pytest.mark.parametrize("place", [0, SIZE // 2, SIZE - 1])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_wherever_it_is(place: int, value: float) -> None:
    a = drawn(np.float32)
    b = a.copy()
    b[place] = value
    assert "1 of 100003" in difference(a, b, 1e-3).reason
    assert "1 of 100003" in difference(b, a, 1e-3).reason
    assert not difference(b, b.copy(), 1e-3).reason
    b[(place + 7) % SIZE] += 1.0
    other = a.copy()
    other[place] = value
    found = difference(other, b, 1e-3)
    assert found.reason.startswith("1 of 100003 elements are further apart")


def test_large_and_small_numbers_neither_overflow_nor_vanish() -> None:
    for size in (1e300, 1e-300):
        a = np.array([1.0, -2.0, 2.0]) * size
        assert difference(a, a * (1 + 1e-9), 1e-6).scale == pytest.approx(np.sqrt(3) * size)
        assert not difference(a, a * (1 + 1e-9), 1e-6).reason
        assert difference(a, a * 1.1, 1e-6).reason


def test_zeros_have_no_scale_and_any_difference_counts() -> None:
    zeros = np.zeros(5, np.float32)
    assert not difference(zeros, zeros, 0.0).reason
    assert difference(zeros, zeros + 1e-30, 0.5).worst_rel == np.inf


def test_arrays_that_are_not_contiguous() -> None:
    a = drawn(np.float32)[: 300 * 300].reshape(300, 300)
    assert not difference(a.T, np.ascontiguousarray(a.T), 0.0).reason
    assert difference(a.T, a, 1e-3).reason


@pytest.mark.parametrize(
    ("reference", "candidate", "reason"),
    [
        ([1.0], np.float64(1.0), "one side is a sequence, the other a tensor"),
        ([np.zeros(2)], [], "a sequence of 1 became one of 0"),
        ([np.zeros(2), np.ones(1)], [np.zeros(2), np.full(1, 2.0)], "item 1: 1 of 1 elements are further apart"),
        (None, None, ""),
        (None, np.zeros(1), "one side has a value, the other has none"),
        (np.zeros(2, np.float32), np.zeros(2), "dtype float32 became float64"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "shape [2, 3] became [3, 2]"),
        (np.array(["a", "b"]), np.array(["a", "bb"]), "1 of 2 elements differ; integers, bools and strings"),
        (np.array(["a"]), np.array(["a"], object), ""),
        (np.array([1, 2, 3]), np.array([1, 5, 7]), "2 of 3 elements differ"),
        (np.array([True, False]), np.array([True, True]), "1 of 2 elements differ"),
        (np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]), "1 of 2 infinities differ"),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), "1 of 2 elements are NaN on one side only"),
    ],
)
def test_what_differs_is_said(reference: Any, candidate: Any, reason: str) -> None:
    found = difference(reference, candidate, 1e-3).reason
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("reference", "candidate", "compared", "unequal", "scale", "worst_abs", "worst_rel"),
    [
        (np.array([3, 4]), np.array([3, 9]), 2, 1, 12.5**0.5, 5.0, 1.0),
        (np.array([3, 4]), np.array([3, 4]), 2, 0, 12.5**0.5, 0.0, 0.0),
        (np.array(["a", "b"]), np.array(["a", "c"]), 2, 1, 1.0, 0.0, 1.0),
        (np.array([1.0, 1.0]), np.array([1.0, 2.0]), 2, 0, 1.0, 1.0, 0.5),
        (np.array([np.nan] * 3), np.array([np.nan] * 3), 0, 0, 0.0, 0.0, 0.0),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), 1, 0, 0.0, 0.0, 0.0),
        (np.array([np.nan, np.inf, 1, 1]), np.array([np.nan, np.inf, 1, 2]), 3, 0, 1.0, 1.0, 0.5),
        (np.zeros(0), np.zeros(0), 0, 0, 0.0, 0.0, 0.0),
        (None, None, 1, 0, 0.0, 0.0, 0.0),
        ([np.ones(3), np.array([3, 4])], [np.ones(3), np.array([3, 9])], 5, 1, 12.5**0.5, 5.0, 1.0),
        ([], [], 0, 0, 0.0, 0.0, 0.0),
    ],
)
def test_the_figures_of_small_values(
    reference: Any, candidate: Any, compared: int, unequal: int, scale: float, worst_abs: float, worst_rel: float
) -> None:
    found = difference(reference, candidate, 1.0)
    assert (found.compared, found.unequal, found.worst_abs) == (compared, unequal, worst_abs)
    assert (found.scale, found.worst_rel) == pytest.approx((scale, worst_rel))
    assert found.is_exact == (worst_abs == 0 and not unequal)


def test_the_tolerance_the_floor_and_the_spread_are_limits_that_may_be_reached() -> None:
    one, two = np.array([1.0, 1.0]), np.array([1.0, 2.0])  # half of the scale, 1 in its units
    assert not difference(one, two, 0.5).reason
    assert difference(one, two, 0.49).reason
    assert not difference(one, two, 0.0, floor=1.0).reason
    assert difference(one, two, 0.0, floor=0.99).reason
    assert not difference(one, two, 1.0, spread=0.70711).reason  # one of two elements: 1 / sqrt(2)
    assert "root mean square of the differences is 7.1e-01 of the output's, where rounding explains 7.1e-01" in (
        difference(one, two, 1.0, spread=0.7071).reason
    )
    assert not difference(one, two, 1.0, floor=1.0, spread=0.1).reason


def test_layouts_are_compared_alone() -> None:
    assert not layout_difference(np.zeros(2), np.ones(2)).reason
    assert layout_difference(np.zeros(2), np.ones(3)).reason == "shape [2] became [3]"
    assert layout_difference(np.zeros(2), np.zeros(2)).compared == 0
    assert layout_difference([np.zeros(2)], np.zeros(2)).reason
    assert not layout_difference([np.zeros(2)], [np.ones(2)]).reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(1, np.float32), 2.0**-24),
        (np.zeros(1, np.float64), 2.0**-53),
        (np.zeros(1, np.float16), 2.0**-11),
        (np.zeros(1, ml_dtypes.bfloat16), 2.0**-8),
        (np.zeros(1, np.complex64), 2.0**-24),
        (np.zeros(1, np.complex128), 2.0**-53),
        (np.zeros(1, np.int32), 0.0),
        ([np.zeros(1, np.float32), np.zeros(1, np.float16)], 2.0**-11),
        ([], 0.0),
    ],
)
def test_the_unit_roundoff_is_that_of_ieee_754(value: Any, expected: float) -> None:
    assert unit(value) == expected
    assert isinstance(value, list) or is_float(value) == (expected > 0)
