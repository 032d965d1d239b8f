"""The scores: known values, and what they say of nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.base import rooms
from onnxsmith.precision.scores.base import Score, distance

SCORES = rooms.members("onnxsmith.precision.scores", Score)


def test_the_scores_and_their_directions() -> None:
    assert {name: one.better for name, one in SCORES.items()} == {
        "agreement": "higher", "cer": "lower", "cosine": "higher", "map50": "higher", "perplexity": "lower",
        "psnr": "higher", "top1": "higher", "wer": "lower",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(SCORES))
def test_no_pair_is_no_number(name: str) -> None:
    assert math.isnan(SCORES[name].value(iter(())))


def test_top1() -> None:
    top1 = SCORES["top1"]
    logits = {"y": np.array([[0.1, 0.9, 0.0]], np.float32), "z": np.zeros(3)}
    assert top1.predicted(logits) == [1]
    assert top1.value([(np.array([1]), 1), (np.array([2]), 1)]) == 0.5
    assert top1.value([(np.array([1, 2]), [1, 0])]) == 0.5
    assert top1.predicted({"label": np.array([3])}) == [3]


def test_error_rates() -> None:
    assert SCORES["cer"].value([("kitten", "sitting")]) == 3 / 7
    assert SCORES["cer"].value([("", "ab"), ("cd", "cd")]) == 0.5
    assert SCORES["wer"].value([("the cat sat", "the cat sat down")]) == 0.25


@pytest.mark.parametrize("name", ["cer", "wer"])
def test_an_array_is_no_text(name: str) -> None:
    with pytest.raises(TypeError, match="not a text"):
        SCORES[name].value([(np.zeros(3), "abc")])


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_the_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a)
    assert distance(a, c) <= distance(a, b) + distance(b, c)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))


def test_psnr() -> None:
    wanted = np.zeros((1, 3, 4, 4))
    assert SCORES["psnr"].value([(wanted + 0.1, wanted)]) == pytest.approx(20.0)
    assert SCORES["psnr"].value([(wanted + 10.0, wanted + 200.0)]) == pytest.approx(10 * math.log10(255**2 / 190**2))
    assert SCORES["psnr"].value([(wanted, wanted)]) == 120.0


@pytest.mark.parametrize("largest", [1.0, 1.4, 255.0, 300.0, 4095.0, 65535.0, 1e6])
def test_psnr_has_one_peak_for_all_images(largest: float) -> None:
    peak = next((one for one in (1.0, 255.0, 65535.0) if largest <= 1.5 * one), largest)
    dark, light = np.zeros(4), np.full(4, largest)
    found = SCORES["psnr"].value([(dark + peak / 10, dark), (light - peak / 10, light)])
    assert found == pytest.approx(20.0)


def test_cosine() -> None:
    assert SCORES["cosine"].value([([1.0, 0.0], [0.0, 2.0])]) == 0.0
    assert SCORES["cosine"].value([([[1.0, 1.0]], [2.0, 2.0])]) == pytest.approx(1.0)
    assert SCORES["cosine"].value([([0.0, 0.0], [0.0, 0.0]), ([0.0], [1.0])]) == 0.5


def test_perplexity_of_logits_and_of_log_likelihoods() -> None:
    uniform = np.zeros((1, 5, 7), np.float32)
    assert SCORES["perplexity"].value([(uniform, np.arange(5))]) == pytest.approx(7.0)
    assert SCORES["perplexity"].value([(np.full(3, -math.log(7)), None)]) == pytest.approx(7.0)
    sure = np.where(np.arange(7) == 2, 1000.0, 0.0)[None]
    assert SCORES["perplexity"].value([(sure, [2])]) == pytest.approx(1.0)
    assert SCORES["perplexity"].value([(uniform, [0, -1, -1, -1, -1])]) == pytest.approx(7.0)


def test_average_precision_of_boxes() -> None:
    box, other = [0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]
    score = SCORES["map50"]
    label = (np.array([box, other]), np.array([1, 2]))
    assert score.value([((np.array([box, other]), np.array([0.9, 0.8]), np.array([1, 2])), label)]) == 1.0
    assert score.value([((np.array([box]), np.array([0.9]), np.array([1])), label)]) == 0.5
    twice = (np.array([box, box, other]), np.array([0.9, 0.8, 0.7]), np.array([1, 1, 2]))
    assert score.value([(twice, label)]) == 1.0  # the second box of one object is wrong, after all were found
    shifted = (np.array([[6.0, 0.0, 16.0, 10.0], other]), np.array([0.9, 0.8]), np.array([1, 2]))
    assert score.value([(shifted, label)]) == 0.5
    wrong_class = (np.array([box, other]), np.array([0.9, 0.8]), np.array([2, 1]))
    assert score.value([(wrong_class, label)]) == 0.0


SCORES_OF_CLASSES = {"y": np.zeros((1, 4), np.float32)}


@pytest.mark.parametrize(
    ("name", "prediction", "label", "outputs"),
    [
        ("top1", np.array([1]), "one", None),
        ("top1", np.array([1]), 1.5, None),
        ("top1", np.array([1]), 4, SCORES_OF_CLASSES),
        ("top1", np.array([1]), -1, SCORES_OF_CLASSES),
        ("top1", np.array([1, 2, 3]), [1, 2], None),
        ("top1", np.array(["a"]), 1, None),
        ("cer", "abc", [1, 2], None),
        ("wer", "abc", None, None),
        ("cosine", np.zeros(3), np.zeros(4), None),
        ("psnr", np.zeros(3), "picture", None),
        ("perplexity", np.zeros((2, 5)), [1, 5], None),
        ("perplexity", np.zeros((2, 5)), [1], None),
        ("perplexity", np.zeros((2, 5)), [-1, -1], None),
        ("perplexity", np.zeros((2, 5)), ["a", "b"], None),
        ("map50", None, 3, None),
        ("map50", None, (np.zeros((2, 4)), [1]), None),
    ],
)
def test_labels_that_do_not_fit(name: str, prediction: Any, label: Any, outputs: Any) -> None:
    assert SCORES[name].unfit(prediction, label, outputs)


@pytest.mark.parametrize(
    ("name", "prediction", "label", "outputs"),
    [
        ("top1", np.array([1]), 3, SCORES_OF_CLASSES),
        ("top1", np.array([1]), np.float32(3), SCORES_OF_CLASSES),
        ("top1", np.array([1, 2]), 1, None),
        ("top1", np.array([7]), 100, None),
        ("top1", np.array(["a"]), "b", None),
        ("cer", "12", 12, None),
        ("wer", "a b", np.array("a b"), None),
        ("cosine", np.zeros((1, 3)), np.zeros(3), None),
        ("perplexity", np.zeros((1, 2, 5)), [1, -1], None),
        ("map50", None, (np.zeros((0, 4)), []), None),
        ("map50", None, [[[0, 0, 1, 1]], [2]], None),
    ],
)
def test_labels_that_fit(name: str, prediction: Any, label: Any, outputs: Any) -> None:
    assert SCORES[name].unfit(prediction, label, outputs) == ""


def test_without_labels_perplexity_is_that_of_the_likeliest_tokens() -> None:
    logits = np.array([[0.0, 9.0], [9.0, 0.0]])
    label = SCORES["perplexity"].as_label(logits)
    assert label.tolist() == [1, 0]
    assert SCORES["perplexity"].value([(logits, label)]) < 1.001
    assert SCORES["perplexity"].as_label(np.array([-1.0])) is None
