"""Values like an example come near the numbers with which the graph compares the input."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.generate import Generator
from tests.rewrites import head

MODEL = """g (float[n,8] x) => (bool[n,8] y) { c = Constant<value_float = %s>() y = Greater(x, c) }"""


def drawn(limit: str, example: np.ndarray) -> np.ndarray:
    generator = Generator.for_model(from_text(head(20) + MODEL % limit))
    generator.examples["x"] = example  # type: ignore[index]
    return np.asarray(generator.feed({"n": 64}).values["x"])


@pytest.mark.parametrize("limit", ["0.5", "40.0"])
def test_of_both_signs_at_any_limit(limit: str) -> None:
    values = drawn(limit, np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
    assert (np.abs(values / float(limit) - 1) < 0.02).any()


@pytest.mark.parametrize(("limit", "near"), [("0.5", True), ("40.0", False)])
def test_of_one_sign_in_the_range_of_the_example(limit: str, near: bool) -> None:
    example = np.random.default_rng(0).random((4, 8)).astype(np.float32)
    values = drawn(limit, example)
    assert values.min() >= example.min() - 1e-6
    assert values.max() <= example.max() + 1e-6
    assert (np.abs(values / float(limit) - 1) < 0.02).any() == near
