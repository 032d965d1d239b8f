"""Matrices in blocks: how they are stored, rounded, and rounded with data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.gptq_blocks import compensated
from onnxsmith.precision.moments import Moments, total
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.precision.scaled_blocks import Blocks, packed, unpacked
from onnxsmith.runtimes.base import get

Array = np.ndarray[Any, Any]


def drawn(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def arithmetic() -> Iterator[Arithmetic]:
    with Arithmetic(
        from_text('<ir_version: 10, opset_import: ["": 18]> g (float[n] x) => (float[n] y) { y = Neg(x) }')
    ) as made:
        yield made


def rounded(arithmetic: Arithmetic, matrix: Array, moments: Array | None = None, **options: Any) -> Blocks:
    wanted = {"bits": 4, "block": 32, "symmetric": False, **options}
    return arithmetic.blocks(ir.Value(), lambda: matrix, lambda: moments, by_columns=False, **wanted)


@pytest.mark.parametrize("bits", [4, 8])
def test_packing_is_undone(bits: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 2**bits, (5, 7)).astype(np.uint8)
    np.testing.assert_array_equal(unpacked(packed(numbers, bits), bits, 7), numbers)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("rows", "columns", "block"), [(96, 5, 32), (200, 3, 64), (16, 1, 16), (1000, 2, 256)])
def test_every_form_holds_the_same_matrix(
    arithmetic: Arithmetic, rows: int, columns: int, block: int, symmetric: bool
) -> None:
    matrix = drawn((rows, columns), 1)
    blocks = rounded(arithmetic, matrix, block=block, symmetric=symmetric)
    found = blocks.matrix()
    assert (blocks.rows, blocks.columns, blocks.block) == (rows, columns, block)
    assert np.sqrt(np.mean((found - matrix) ** 2)) < 0.15
    scales = np.repeat(blocks.scales, block, axis=1)[:, :rows].T
    if symmetric:
        numbers, turned = blocks.signed()
        np.testing.assert_allclose(
            numbers.astype(np.float32) * np.repeat(turned, block, axis=0)[:rows], found, rtol=1e-6
        )
    else:
        table, zeros = blocks.table()
        assert zeros is not None
        offsets = np.repeat(zeros.astype(np.float32), block, axis=1)[:, :rows]
        np.testing.assert_allclose((table.astype(np.float32) - offsets).T * scales, found, rtol=1e-6)


def test_blocks_of_one_sign_and_of_equal_numbers(arithmetic: Arithmetic) -> None:
    """onnxruntime's k-quant alone makes 1.0 of numbers about 10, and 0 of a block of .3."""
    matrix = np.concatenate(
        [drawn((32, 4), 1) * 0.1 + 10, np.full((32, 4), 0.3, np.float32), np.zeros((32, 4), np.float32)]
    )
    found = rounded(arithmetic, matrix).matrix()
    assert np.abs(found - matrix).max() < 0.5
    assert np.abs(found[32:] - matrix[32:]).max() < 1e-6


def test_each_matrix_is_rounded_once(arithmetic: Arithmetic) -> None:
    value, calls = ir.Value(), []

    def matrix() -> Array:
        calls.append(1)
        return drawn((32, 4), 1)

    for _ in range(3):
        arithmetic.blocks(value, matrix, lambda: None, by_columns=False, bits=4, block=32, symmetric=False)
    assert len(calls) == 1


@pytest.mark.parametrize("symmetric", [False, True])
def test_errors_make_up_for_each_other(arithmetic: Arithmetic, symmetric: bool) -> None:
    inputs = drawn((500, 96), 2) @ (drawn((96, 96), 3) * np.geomspace(1, 20, 96, dtype=np.float32)[:, None])
    matrix, moments = drawn((96, 24), 1), (inputs.T @ inputs).astype(np.float64)
    lost = [
        np.linalg.norm(inputs @ (rounded(arithmetic, matrix, known, symmetric=symmetric).matrix() - matrix))
        for known in (None, moments)
    ]
    assert lost[1] < 0.6 * lost[0]


def test_moments_that_have_no_inverse_and_inputs_that_are_zero(arithmetic: Arithmetic) -> None:
    inputs = np.repeat(drawn((40, 1), 2), 64, axis=1)
    inputs[:, 3] = 0
    matrix = drawn((64, 5), 1)
    found = rounded(arithmetic, matrix, (inputs.T @ inputs).astype(np.float64)).matrix()
    assert np.isfinite(found).all()
    plain = rounded(arithmetic, matrix).matrix()
    assert np.linalg.norm(inputs @ (found - matrix)) <= np.linalg.norm(inputs @ (plain - matrix))
    nothing = compensated(matrix, np.full((64, 64), np.nan), 32, lambda part: rounded(arithmetic, part))
    np.testing.assert_array_equal(nothing.matrix(), plain)


def test_moments_are_sums_over_the_data() -> None:
    text = """<ir_version: 10, opset_import: ["": 18]> g (float[n,4] x, float[4,6] w) => (float[n,6] y) {
        a = MatMul(x, w) b = Relu(a) y = Neg(b) }"""
    model = from_text(text)
    weight = model.graph.inputs.pop()
    weight.const_value = ir.tensor(drawn((4, 6), 1), name="w")
    model.graph.initializers["w"] = weight
    samples = [Sample({"x": drawn((5, 4), seed)}) for seed in range(3)]
    x = np.concatenate([one.feeds["x"] for one in samples]).astype(np.float64)
    b = np.maximum(x @ drawn((4, 6), 1), 0)
    for held in (2**30, 1):  # all at once; one after the other
        found = Moments(model, get("onnxruntime"), samples, {"x": 4, "b": 6}, held)
        np.testing.assert_allclose(found.of("x"), x.T @ x, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.of("b"), b.T @ b, rtol=1e-4, atol=1e-4)
    assert found.of("y") is None
    few = Moments(model, get("onnxruntime"), samples[:1], {"x": 4, "b": 6})
    assert few.of("x") is not None
    assert few.of("b") is None  # five vectors of six elements


def test_the_sum_of_unknown_moments_is_unknown() -> None:
    assert total([]) is None
    assert total([np.eye(2), None]) is None
    np.testing.assert_array_equal(total([np.eye(2), np.eye(2)]), 2 * np.eye(2))
