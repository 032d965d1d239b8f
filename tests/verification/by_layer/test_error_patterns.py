"""A difference that has a simple form is said in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.verification.by_layer.error_patterns import pattern

RIGHT = np.random.default_rng(0).standard_normal((2, 6, 12, 12)).astype(np.float32)
SQUARE = RIGHT[:, 0]


def at(array: Any, where: Any, value: Any) -> Any:
    made = array.copy()
    made[where] = value
    return made


BORDER = at(RIGHT + np.random.default_rng(1).standard_normal(RIGHT.shape).astype(np.float32),
            np.s_[..., 1:-1, 1:-1], RIGHT[..., 1:-1, 1:-1])  # fmt: skip
FACTORS = np.linspace(0.5, 1.5, 6, dtype=np.float32)[:, None, None]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (RIGHT, RIGHT * np.float32(1.01), "times 1.01"),
        (RIGHT, -RIGHT, "times -1"),
        (RIGHT, RIGHT * FACTORS, "times a different factor at each index of axis 1 (0.5 to 1.5)"),
        (RIGHT, RIGHT + np.float32(0.5), "plus 0.5"),
        (RIGHT, RIGHT + FACTORS, "plus a different number at each index of axis 1, like a bias"),
        (RIGHT, RIGHT[:, :, ::-1], "in reverse order along axis 2"),
        (SQUARE, SQUARE.swapaxes(1, 2), "axes 1 and 2 are exchanged"),
        (RIGHT, np.roll(RIGHT, 1, 3), "shifted by 1 along axis 3"),
        (RIGHT, np.roll(RIGHT, -2, 2), "shifted by -2 along axis 2"),
        (RIGHT, RIGHT[:, [2, 0, 1, 3, 4, 5]], "the same slices along axis 1 in another order"),
        (RIGHT[0, 0, 0], np.random.default_rng(2).permutation(RIGHT[0, 0, 0]), "the same numbers in another order"),
        (RIGHT, np.clip(RIGHT, None, 1), "cut off at 1"),
        (RIGHT, np.maximum(RIGHT, 0), "0 where it differs"),
        (RIGHT, at(RIGHT, np.s_[:, 4], 7 * RIGHT[:, 4] ** 2), "only at index 4 of axis 1, which has size 6"),
        (RIGHT, BORDER, "only at the border, which is 1 wide"),
        (RIGHT, np.rint(RIGHT), "whole numbers, as if cast to integers"),
        (RIGHT, RIGHT.astype(np.float16), "rounded to float16"),
    ],
)
def test_a_form_is_said(ours: Any, theirs: Any, said: str) -> None:
    assert pattern(ours, theirs) == said


@pytest.mark.parametrize(
    "theirs",
    [
        RIGHT + np.random.default_rng(3).standard_normal(RIGHT.shape),
        RIGHT[:1],
        at(RIGHT, np.s_[0, 0, 0, 0], np.nan),
        RIGHT.astype(np.int64),
        None,
    ],
    ids=["noise", "another shape", "a NaN", "integers", "nothing"],
)
def test_no_form_is_said_where_there_is_none(theirs: Any) -> None:
    assert pattern(RIGHT, theirs) in ("", "whole numbers, as if cast to integers")


def test_tiny_and_constant_tensors_have_no_form() -> None:
    assert pattern(RIGHT[0, 0, 0, :3], RIGHT[0, 0, 0, :3] * 2) == ""
    assert pattern(np.zeros(20, np.float32), np.ones(20, np.float32)) == ""


@pytest.mark.parametrize("shape", [(2, 5, 16), (3, 40)])
def test_numbers_that_stayed_in_their_places_are_in_no_other_order(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    ours = rng.standard_normal(shape)
    theirs = ours * (1 + 5e-4 * rng.random(shape))
    assert "order" not in pattern(ours, theirs)
    assert pattern(ours, theirs[::-1]).startswith(("in reverse order along axis 0", "the same slices along axis 0"))


def test_a_few_wrong_numbers_are_not_another_order() -> None:
    """One channel that is off by 1% moves sorted numbers by less than a thousandth of their scale."""
    right = np.random.default_rng(0).normal(size=(2, 64, 4, 4)).astype(np.float32)
    wrong = right.copy()
    wrong[:, 9] *= 1.01
    assert "order" not in pattern(right, wrong)
    assert pattern(right, np.random.default_rng(1).permutation(right.ravel()).reshape(right.shape)) == (
        "the same numbers in another order"
    )
