"""The lengths of Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.rounding_terms import fourier_length

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '


@pytest.mark.parametrize(
    ("graph", "sizes", "wanted"),
    [
        ("(float[2,12,1] x) => (float[2,12,2] y) { y = DFT(x) }", {}, (12, False)),
        ("(float[2,16,1] x) => (float[2,16,2] y) { y = DFT(x) }", {}, (0, False)),
        ("(float[2,n,1] x) => (float[2,n,2] y) { y = DFT(x) }", {}, (0, True)),
        ("(float[2,n,1] x) => (float[2,n,2] y) { y = DFT(x) }", {"n": 30}, (30, False)),
        ("(float[2,n,1] x) => (float[2,n,2] y) <int64 k = {20}> { y = DFT(x, k) }", {}, (20, False)),
        ("(float[2,n,1] x, int64 k) => (float[2,n,2] y) { y = DFT(x, k) }", {"n": 30}, (0, True)),
        ("(float[30,n,1] x) => (float[30,n,2] y) <int64 axis = {0}> { y = DFT(x, , axis) }", {}, (30, False)),
        ("(float[2,n,1] x, int64 axis) => (float[2,n,2] y) { y = DFT(x, , axis) }", {"n": 30}, (0, True)),
        (
            "(float[2,n,1] x) => (float[2,f,b,2] y) <int64 s = {4}, float[6] w = {1,1,1,1,1,1}> { y = STFT(x, s, w) }",
            {},
            (6, False),
        ),
        ("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }", {}, (0, False)),
    ],
)
def test_length(graph: str, sizes: dict[str, int], wanted: tuple[int, bool]) -> None:
    assert fourier_length(from_text(HEAD + graph).graph.node(0), sizes) == wanted


def test_the_tolerance_grows_with_the_length_that_is_no_power_of_two() -> None:
    def tolerance(size: int) -> float:
        model = from_text(HEAD + f"(float[2,{size},1] x) => (float[2,{size},2] y) {{ y = DFT(x) }}")
        return roundings(model)["y"].tolerance

    assert tolerance(1000) == pytest.approx(8 * 2 * 1000 * 2.0**-24, rel=0.05)
    assert tolerance(1024) < 1e-4


def test_a_wrong_transform_is_seen() -> None:
    """A coefficient that is missing is much more than the rounding of a transform of 257 elements."""
    model = from_text(HEAD + "(float[2,257,1] x) => (float[2,257,2] y) { y = DFT(x) }")
    x = np.random.default_rng(0).standard_normal((2, 257))
    right = np.fft.fft(x)
    wrong = np.fft.fft(x)
    wrong[:, 40] = 0
    scale = np.sqrt((np.abs(right) ** 2).mean())
    assert np.abs(wrong - right).max() / scale > 100 * roundings(model)["y"].tolerance
