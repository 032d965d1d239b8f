"""algebra/expand-gather: each element repeated, or the whole; what only looks like it."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/expand-gather"


def graph(x: str, y: str, axis: str, expand: str, merged: str, end: str = "y = Reshape(b, merged)") -> str:
    count = expand.count(",") + 1
    return f"""g (float[{x}] x) => (float[{y}] y) <int64[1] axis = {{{axis}}}, int64[{count}] shape = {{{expand}}},
        int64[{merged.count(",") + 1}] merged = {{{merged}}}> {{
        a = Unsqueeze(x, axis)\n b = Expand(a, shape)\n {end} }}"""


REWRITTEN = {
    "keys of a dynamic batch": graph("B,2,S,4", "B,6,S,4", "2", "1, 1, 3, 1, 1", "0, 6, -1, 4"),
    "known sizes": graph("2,2,5,4", "2,6,5,4", "2", "2, 2, 3, 5, 4", "2, 6, 5, 4"),
    "one head": graph("B,1,S,4", "B,3,S,4", "2", "1, 1, 3, 1, 1", "0, 3, -1, 4"),
    "the whole": graph("N,2", "N,6", "1", "1, 3, 1", "-1, 6"),
    "the first axis": graph("2,N", "6,N", "0", "3, 1, 1", "6, -1"),
    "the last axis": graph("N,2", "N,6", "-1", "1, 1, 3", "-1, 6"),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, "Gather", REWRITTEN[case])


def test_a_reshape_that_inserts_the_axis() -> None:
    text = REWRITTEN["known sizes"].replace("Unsqueeze(x, axis)", "Reshape(x, axis)")
    assert_rewritten(RULE, "Gather", text.replace("int64[1] axis = {2}", "int64[5] axis = {2, 2, 1, 5, 4}"))


def test_a_target_that_is_computed() -> None:
    text = """g (float[B,2,S,4] x) => (float[B,6,S,4] y) <int64[1] axis = {2}, int64[1] n = {3}, int64[2] m = {6, -1},
        int64[1] d = {4}> {
        a = Unsqueeze(x, axis)\n h = Shape<end = 2>(x)\n t = Shape<start = 2>(x)\n s = Concat<axis = 0>(h, n, t)
        b = Expand(a, s)\n i = Shape<end = 1>(x)\n r = Concat<axis = 0>(i, m, d)\n y = Reshape(b, r) }"""
    assert_rewritten(RULE, "Gather", text)


ALONE = {
    "another pair is merged": graph("B,2,3,4", "B,2,2,12", "2", "1, 1, 2, 1, 1", "0, 2, 2, 12"),
    "nothing is repeated": graph("B,2,S,4", "B,2,S,4", "2", "1, 1, 1, 1, 1", "0, 2, -1, 4"),
    "two axes grow": graph("B,1,S,4", "B,6,S,4", "2", "1, 2, 3, 1, 1", "0, 6, -1, 4"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])


REFUSED = {
    "1: another reader": (
        "used elsewhere",
        graph(
            "B,2,S,4",
            "B,6,S,4",
            "2",
            "1, 1, 3, 1, 1",
            "0, 6, -1, 4",
            "c = Reshape(b, merged)\n d = ReduceSum(b)\n y = Mul(c, d)",
        ),
    ),
    "2: an unknown size": ("not known", graph("N,M", "N,K", "1", "1, 3, 1", "0, -1")),
    "3: many indices": ("too many", graph("N,2", "N,M", "1", "1, 600, 1", "-1, 1200")),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])
