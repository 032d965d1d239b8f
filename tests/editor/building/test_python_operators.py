"""`build`: Python's operators on tensors give the numbers that numpy gives, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import onnxsmith

SPECIAL = [0.0, -0.0, 1, -1, 0.1, -0.1, 3, -3, 7.5, -7.5, np.inf, -np.inf, np.nan, 6e4, -6e4, 1e-7, -1e-7]


def outputs(tmp_path: Path, python: Callable[..., Any], **inputs: npt.NDArray[Any]) -> Any:
    """Builds a model of a Python expression, runs it, and returns its output."""
    file = tmp_path / "m.onnx"
    with onnxsmith.build(file) as g:
        g.output("result", python(*(g.input(name, array.dtype, ["n"]) for name, array in inputs.items())))
    return onnxsmith.run(file, inputs).outputs["result"]


def same(computed: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    equal = (computed == expected) & (np.signbit(computed) == np.signbit(expected))
    return np.asarray(equal | (np.isnan(computed) & np.isnan(expected)))


def operands(dtype: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns pairs of special values, of near multiples, and of values of many sizes (quotients below 2 ** 22)."""
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    divisors = np.round(rng.normal(size=4000) * 3, 1)
    near = np.stack([divisors * rng.integers(-50, 50, 4000), divisors])
    wide = rng.normal(size=(2, 4000)) * 10.0 ** rng.integers(-1, 2, (2, 4000))
    first, second = np.concatenate([grid, near, wide], axis=1).astype(dtype)
    return first, second


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floor_division_and_remainder_of_floats(dtype: str, tmp_path: Path) -> None:
    a, b = operands(dtype)
    with np.errstate(all="ignore"):
        quotients, remainders = np.floor_divide(a, b), np.remainder(a, b)
    assert same(outputs(tmp_path, lambda a, b: a // b, a=a, b=b), quotients).all()
    assert same(outputs(tmp_path, lambda a, b: a % b, a=a, b=b), remainders).all()


@pytest.mark.parametrize("divisor", [0.1, -0.3, 3, float("inf"), -float("inf")])
def test_floor_division_and_remainder_by_a_python_number(divisor: float, tmp_path: Path) -> None:
    a = np.array([1.0, 0.3, 0.7, -7.5, 7.5, -0.0, 1e20], np.float32)
    assert same(outputs(tmp_path, lambda a: a // divisor, a=a), a // np.float32(divisor)).all()
    assert same(outputs(tmp_path, lambda a: a % divisor, a=a), a % np.float32(divisor)).all()


def test_powers(tmp_path: Path) -> None:
    half = np.array([0.5, 1.5, 2.0])
    for dtype in (np.float16, np.float32, np.float64):
        x = half.astype(dtype)
        for power in (lambda x: 2**x, lambda x: x**0.1, lambda x: x**-1, lambda x: x ** [1, 2, -3]):
            computed, expected = outputs(tmp_path, power, x=x), power(x)
            assert computed.dtype == x.dtype
            np.testing.assert_allclose(computed, expected.astype(dtype), rtol=2 * np.finfo(dtype).eps)
    whole = np.array([2, 3, -9])
    assert outputs(tmp_path, lambda i: i**2, i=whole).tolist() == [4, 9, 81]
    assert outputs(tmp_path, lambda i: i ** np.array([0, 1, 2]), i=whole).tolist() == [1, 3, 81]
    np.testing.assert_allclose(outputs(tmp_path, lambda i: 2.5**i, i=whole), 2.5**whole, rtol=1e-6)
    x = half.astype(np.float32)
    np.testing.assert_allclose(outputs(tmp_path, lambda x, i: x**i, x=x, i=whole), x**whole, rtol=1e-6)
