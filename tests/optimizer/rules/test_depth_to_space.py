"""fuse/depth-to-space: permutations that are one of the three, and shapes that say so."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/depth-to-space"


def moved(x: str, middle: str, perm: str, last: str, more: str = "", dtype: str = "float") -> str:
    return f"""g ({dtype}[{x}] x) => ({dtype}[A,B,C,D] y) <int64[6] m = {{{middle}}}, int64[4] l = {{{last}}}> {{
        a = Reshape(x, m)\n b = Transpose<perm = [{perm}]>(a)\n y = Reshape(b, l)\n {more} }}"""


REWRITTEN = {
    "CRD": ("DepthToSpace", moved("2,8,3,4", "2,2,2,2,3,4", "0,1,4,2,5,3", "2,2,6,8")),
    "DCR": ("DepthToSpace", moved("2,8,3,4", "2,2,2,2,3,4", "0,3,4,1,5,2", "2,2,6,8")),
    "DCR of three": ("DepthToSpace", moved("N,18,3,4", "0,3,3,2,3,4", "0,3,4,1,5,2", "0,2,9,12")),
    "back": ("SpaceToDepth", moved("2,3,4,6", "2,3,2,2,3,2", "0,3,5,1,2,4", "2,12,2,3")),
    "back, any number": ("SpaceToDepth", moved("N,3,4,6", "0,3,2,2,3,2", "0,3,5,1,2,4", "0,12,2,3")),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_rewritten(case: str, dtype: str) -> None:
    op, text = REWRITTEN[case]
    text = text.replace("float", dtype)
    assert_rewritten(RULE, op, text)
    assert_rewritten(RULE, op, text, runtime="onnxruntime")


def test_any_size() -> None:
    text = """g (float[N,8,H,W] x) => (float[A,B,C,D] y)
        <int64[3] c = {2, 2, 2}, int64[1] one = {2}, int64[2] k = {2, 2}> {
        n = Shape<start = 0, end = 1>(x)\n s = Shape<start = 2>(x)\n t = Concat<axis = 0>(n, c, s)\n a = Reshape(x, t)
        b = Transpose<perm = [0, 3, 4, 1, 5, 2]>(a)\n m = Mul(s, k)\n u = Concat<axis = 0>(n, one, m)
        y = Reshape<allowzero = 1>(b, u) }"""
    result = assert_rewritten(RULE, "DepthToSpace", text)
    assert result.graph.node(0).attributes["mode"].as_string() == "DCR"


REFUSED = {
    "2: integers": ("floating point", moved("2,8,3,4", "2,2,2,2,3,4", "0,1,4,2,5,3", "2,2,6,8", dtype="int32")),
    "1: another reader": (
        "used elsewhere",
        moved("2,8,3,4", "2,2,2,2,3,4", "0,1,4,2,5,3", "2,2,6,8", "z = Neg(b)").replace(
            "D] y)", "D] y, float[E,F,G,H,I,J] z)"
        ),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 3)
def test_before_modes() -> None:
    assert_refused(RULE, "which came with 11", REWRITTEN["CRD"][1], opset=10)


LEFT_ALONE = {
    "blocks that are no squares": moved("2,12,3,4", "2,2,2,3,3,4", "0,1,4,2,5,3", "2,2,6,12"),
    "other rows": moved("2,8,3,4", "2,2,2,2,3,4", "0,1,4,2,5,3", "2,2,8,6"),
    "rows and columns taken for others": moved("2,8,3,4", "2,2,2,2,4,3", "0,1,4,2,5,3", "2,2,8,6"),
    "torch's pixel_unshuffle": moved("2,3,4,6", "2,3,2,2,3,2", "0,1,3,5,2,4", "2,12,2,3"),
    "columns before rows": moved("2,8,3,4", "2,2,2,2,3,4", "0,1,4,3,5,2", "2,2,6,8"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
