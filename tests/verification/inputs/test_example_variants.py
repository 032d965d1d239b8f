"""Inputs made like an example keep its structure, at other sizes too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.verification.inputs.example_variants import like_example
from onnxsmith.verification.inputs.roles import Array, Draw

RNG = np.random.default_rng(5)


def made(example: Any, shape: tuple[int, ...] | None = None, seed: int = 0) -> Array:
    array = np.asarray(example)
    found = like_example(array, shape or array.shape, Draw(np.random.default_rng(seed)))
    assert found is not None
    assert found.shape == (shape or array.shape)
    return found


def test_positions_count_on() -> None:
    assert made(np.arange(5)[None], (2, 8)).tolist() == [list(range(8))] * 2


def test_a_permutation_stays_one() -> None:
    found = made([2, 0, 1, 3], (6,))
    assert sorted(found) == list(range(6))


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
def test_a_causal_mask_stays_causal(dtype: type) -> None:
    found = made(np.tril(np.ones((4, 4))).astype(dtype), (6, 6))
    assert (found == np.tril(np.ones((6, 6)))).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_padding_mask_has_its_padding_behind(seed: int) -> None:
    found = made([[1, 1, 1, 0], [1, 1, 1, 1]], (5, 7), seed)
    assert (np.diff(found, axis=-1) <= 0).all()
    assert (found[:, 0] == 1).all()
    assert not found.all()


def test_padding_in_front_stays_in_front() -> None:
    found = made([[0, 1, 1, 1], [1, 1, 1, 1]], (5, 7))
    assert (np.diff(found, axis=-1) >= 0).all()
    assert (found[:, -1] == 1).all()


def test_a_mask_of_true_is_padding_where_the_example_is() -> None:
    found = made(np.array([[False, False, True], [False, False, False]]), (5, 7))
    assert not found[:, 0].any()
    assert found.any()


def test_a_mask_without_padding_gets_some() -> None:
    found = made(np.ones((2, 9), np.int64))
    assert (found[:, 0] == 1).all()
    assert not found.all()


def test_an_additive_mask_has_its_two_values() -> None:
    low = np.float32(-1e9)
    found = made(np.array([[0, 0, low], [0, 0, 0]], np.float32), (4, 8))
    assert set(found.ravel().tolist()) == {0, float(low)}


def test_probabilities_add_up_to_one() -> None:
    example = RNG.random((3, 5))
    found = made(example / example.sum(-1, keepdims=True), (7, 4))
    np.testing.assert_allclose(found.sum(-1), 1)


def test_unit_vectors_stay_of_length_one() -> None:
    example = RNG.standard_normal((3, 5))
    found = made(example / np.linalg.norm(example, axis=-1, keepdims=True), (7, 5))
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1)


@pytest.mark.parametrize("seed", range(20))
def test_matrices_can_be_inverted(seed: int) -> None:
    example = np.array([[[1.2, 0.1, 30], [-0.1, 0.9, 10], [1e-4, 2e-4, 1]]])
    found = made(example, (4, 3, 3), seed)
    assert np.linalg.cond(found).max() < 4 * np.linalg.cond(example).max()
    assert len({one.tobytes() for one in found}) == 4


@pytest.mark.parametrize("seed", range(5))
def test_matrices_keep_what_kind_they_are(seed: int) -> None:
    turned = np.linalg.qr(RNG.standard_normal((2, 3, 3)))[0]
    found = made(turned, seed=seed)
    np.testing.assert_allclose(found @ found.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-9)
    lower = np.tril(RNG.random((4, 4)) + np.eye(4))
    assert (np.triu(made(lower, seed=seed), 1) == 0).all()
    symmetric = np.array([[2.0, 0.5], [0.5, 3.0]])
    assert made(symmetric, seed=seed)[0, 1] == made(symmetric, seed=seed)[1, 0]


def test_boxes_have_their_corners_in_order() -> None:
    example = np.array([[10, 20, 30, 50], [0, 5, 100, 90], [40, 40, 60, 44.0]])
    found = made(example, (50, 4))
    assert (found[:, :2] < found[:, 2:]).all()
    assert found.min() >= 0
    assert found.max() <= 120


def test_offsets_stay_in_order_from_zero() -> None:
    found = made([0, 3, 3, 7, 9, 12], (8,))
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0


@pytest.mark.parametrize(
    "example",
    [
        RNG.standard_normal((3, 4)),
        RNG.standard_normal((2, 3, 8, 8)),
        RNG.integers(0, 100, (4, 7)),
        np.array(3.0),
        np.zeros((0, 4)),
        np.full((2, 3), np.nan),
        np.array(["a", "b"]),
    ],
    ids=lambda example: f"{example.dtype}{list(example.shape)}",
)
def test_what_shows_no_structure_is_left(example: Array) -> None:
    assert like_example(example, example.shape, Draw(np.random.default_rng(0))) is None
