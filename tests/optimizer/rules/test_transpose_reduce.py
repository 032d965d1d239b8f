"""algebra/transpose-reduce: reductions of what was transposed."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/transpose-reduce"
TEXT = """g (float[2,3,4,5] x) => (float y) {
    t = Transpose<perm = [PERM]>(x)\n y = OP<axes = [AXES], keepdims = KEPT>(t) }"""


def reduced(perm: str, axes: str, kept: int = 0, op: str = "ReduceMean") -> str:
    return TEXT.replace("PERM", perm).replace("AXES", axes).replace("KEPT", str(kept)).replace("OP", op)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceL2", "ReduceProd"])
@pytest.mark.parametrize(
    ("perm", "axes", "kept", "wanted"),
    [
        ("0, 2, 3, 1", "1, 2", 0, (2, 3)),
        ("0, 2, 3, 1", "-3, -2", 0, (2, 3)),
        ("0, 3, 1, 2", "1", 0, (3,)),
        ("3, 2, 1, 0", "0, 1, 2, 3", 1, (0, 1, 2, 3)),
        ("0, 2, 1, 3", "1, 2", 1, (1, 2)),
    ],
)
def test_the_axes_before(op: str, perm: str, axes: str, kept: int, wanted: tuple[int, ...]) -> None:
    result = assert_rewritten(RULE, op, reduced(perm, axes, kept, op))
    assert tuple(result.graph[0].attributes["axes"].as_ints()) == wanted


def test_axes_that_are_an_input() -> None:
    text = """g (float[N,3,4,5] x) => (float y) <int64[2] a = {1, 2}> {
        t = Transpose<perm = [0, 2, 3, 1]>(x)\n y = ReduceSum<keepdims = 0>(t, a) }"""
    assert_rewritten(RULE, "ReduceSum", text)


@refuses(RULE, 1)
@pytest.mark.parametrize(("perm", "axes", "kept"), [("0, 2, 3, 1", "0, 3", 1), ("0, 2, 1, 3", "0", 0)])
def test_the_rest_changes_places(perm: str, axes: str, kept: int) -> None:
    assert_refused(RULE, "change their order", reduced(perm, axes, kept))


def test_axes_that_nobody_knows() -> None:
    text = """g (float[N,3,4,5] x, int64[2] a) => (float y) {
        t = Transpose<perm = [0, 2, 3, 1]>(x)\n y = ReduceSum<keepdims = 0>(t, a) }"""
    assert_left_alone(RULE, text)
