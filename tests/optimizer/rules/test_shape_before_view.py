"""shape/shape-before-view: dimensions are read where they come from."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "shape/shape-before-view"


def test_interleaved_repeats_of_the_older_exporter() -> None:
    """The target's sizes come from the repeated tensor, which then had two readers."""
    text = """g (float[N,2,H,W] x, float[1,2,1,1] w) => (float[A,B,C,D] z)
    <int64[1] three = {3}, int64[5] r = {1, 1, 1, 2, 1}, int64[1] open = {-1}> {
        c = Conv(x, w)\n a = Unsqueeze(c, three)\n t = Tile(a, r)
        s = Shape<end = 2>(t)\n u = Shape<start = 4>(t)\n k = Concat<axis = 0>(s, open, u)\n z = Reshape(t, k) }"""
    assert_rewritten(RULE, "Conv Resize", text.replace("float[1,2,1,1] w", "float[2,2,1,1] w"), runtime="onnxruntime")


def test_through_a_transpose() -> None:
    text = """g (float[N,2,H] x) => (float[H,N,2] y, float[A,B] z) <float zero = {0}> {
        a = Transpose<perm = [2, 0, 1]>(x)\n y = Neg(a)\n s = Shape<start = 1>(a)\n z = Expand(zero, s) }"""
    result = assert_rewritten(RULE, "Transpose Neg Shape Expand", text)
    assert result.graph.node(2).inputs[0] is result.graph.inputs[0]


@pytest.mark.parametrize(
    "case",
    [
        # nothing else reads it: the Transpose has no use then
        "a = Transpose<perm = [2, 0, 1]>(x)\n y = Neg(x)\n s = Shape<start = 1>(a)\n z = Expand(zero, s)",
        # not side by side in the data
        "a = Transpose<perm = [2, 0, 1]>(x)\n y = Neg(a)\n s = Shape<end = 2>(a)\n z = Expand(zero, s)",
    ],
)
def test_no_match(case: str) -> None:
    text = f"g (float[N,2,H] x) => (float[P,Q,R] y, float[A,B] z) <float zero = {{0}}> {{ {case} }}"
    assert_left_alone(RULE, text)
