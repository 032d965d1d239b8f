"""Two values held to each other, piece by piece."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxsmith.comparison.tensors import difference

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
