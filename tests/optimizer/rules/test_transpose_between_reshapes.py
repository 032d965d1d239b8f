"""algebra/transpose-between-reshapes: which dimensions may be split, and what stands in the way."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/transpose-between-reshapes"


def graph(x: str, y: str, merged: str, split: str, perm: str = "0, 2, 1", end: str = "y = Reshape(b, split)") -> str:
    return f"""g (float[{x}] x) => (float[{y}] y)
        <int64[{merged.count(",") + 1}] merged = {{{merged}}}, int64[{split.count(",") + 1}] split = {{{split}}}> {{
        a = Reshape(x, merged)\n b = Transpose<perm = [{perm}]>(a)\n {end} }}"""


REWRITTEN = {
    "the first dimension": (graph("2,4,6,8", "2,4,8,6", "-1, 6, 8", "2, 4, 8, 6"), "Transpose"),
    "a dynamic batch": (graph("B,4,6,8", "B,4,8,6", "-1, 6, 8", "-1, 4, 8, 6"), "Transpose"),
    "sizes that are the same": (graph("4,4,4,4", "4,4,4,4", "-1, 4, 4", "4, 4, 4, 4"), "Transpose"),
    "the last dimension": (graph("B,6,2,4", "2,4,B,6", "0, 6, 8", "2, 4, -1, 6", "2, 0, 1"), "Transpose"),
    "merged and split in different ways": (
        graph("2,2,2,6,8", "2,4,8,6", "-1, 6, 8", "2, 4, 8, 6"),
        "Reshape Transpose",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    text, left = REWRITTEN[case]
    assert_rewritten(RULE, left, text)


def test_sizes_that_are_computed() -> None:
    text = """g (float[B,4,S,8] x) => (float[B,4,8,S] y) <int64[1] m = {-1}, int64[1] d = {8}, int64 two = {2}> {
        s = Shape(x)
        n = Shape<start = 2, end = 3>(x)
        h = Shape<end = 2>(x)
        merged = Concat<axis = 0>(m, n, d)
        a = Reshape(x, merged)
        b = Transpose<perm = [0, 2, 1]>(a)
        split = Concat<axis = 0>(h, d, n)
        y = Reshape(b, split) }"""
    assert_rewritten(RULE, "Transpose", text)


def test_unsqueeze_and_squeeze_are_reshapes() -> None:
    text = """g (float[1,B,S] x) => (float[S,1,B] y) <int64[1] first = {0}, int64[1] second = {1}> {
        a = Squeeze(x, first)\n b = Transpose<perm = [1, 0]>(a)\n y = Unsqueeze(b, second) }"""
    assert_rewritten(RULE, "Transpose", text)


def test_in_a_branch() -> None:
    inner = """a = Reshape(x, merged)\n b = Transpose<perm = [0, 2, 1]>(a)\n
        split = Constant<value = int64[4] {2, 4, 8, 6}>()\n z = Reshape(b, split)"""
    text = f"""g (bool c, float[2,4,6,8] x) => (float[2,4,8,6] y) <int64[3] merged = {{8, 6, 8}}> {{
        y = If (c) <then_branch = t () => (float[2,4,8,6] z) {{ {inner} }},
            else_branch = e () => (float[2,4,8,6] w) {{ w = Transpose<perm = [0, 1, 3, 2]>(x) }}> }}"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Transpose"]


def test_a_dimension_of_1_that_is_dropped_is_not_made() -> None:
    """As torch stacks query, key and value: Reshape, Unsqueeze, Transpose, Squeeze."""
    text = """g (float[5,B,12] x) => (float[3,5,B,4] y) <int64[5] made = {1, 5, -1, 3, 4}, int64[1] axis = {3}> {
        a = Reshape(x, made)\n b = Transpose<perm = [3, 1, 2, 0, 4]>(a)\n y = Squeeze(b, axis) }"""
    result = assert_rewritten(RULE, "Reshape Transpose", text)
    assert list(result.graph[1].attributes["perm"].as_ints()) == [2, 0, 1, 3]


def test_some_dimensions_of_1_are_dropped() -> None:
    text = """g (float[B,12] x) => (float[4,3,1,B] y) <int64[5] made = {0, 1, 3, 4, 1}, int64[1] axis = {3}> {
        a = Reshape(x, made)\n b = Transpose<perm = [3, 2, 4, 1, 0]>(a)\n y = Squeeze(b, axis) }"""
    assert_rewritten(RULE, "Reshape Transpose", text)


@refuses(RULE, 1)
def test_refused() -> None:
    text = graph(
        "2,4,6,8", "2,4,8,6", "-1, 6, 8", "2, 4, 8, 6", end="c = Reshape(b, split)\n d = ReduceSum(b)\n y = Mul(c, d)"
    )
    assert_refused(RULE, "used elsewhere", text)


@refuses(RULE, 2)
def test_two_dimensions_in_other_places() -> None:
    text = """g (float[A,B,8] x, float[B,A] like) => (float[P,Q,R] y) <int64[2] merged = {-1, 8}, int64[1] m = {8}> {
        a = Reshape(x, merged)\n b = Transpose<perm = [1, 0]>(a)
        s = Shape(like)\n split = Concat<axis = 0>(m, s)\n y = Reshape(b, split) }"""
    assert_refused(RULE, "more than one dimension", text)


def test_sizes_of_another_input() -> None:
    text = """g (float[B,S,T] x, float[B,S,2,2] like) => (float[S,P,Q,R] y) <int64[3] merged = {0, 0, -1}> {
        a = Reshape(x, merged)\n b = Transpose<perm = [1, 0, 2]>(a)\n
        s = Shape(like)\n t = Shape<start = 1, end = 2>(like)\n u = Shape<end = 1>(like)\n v = Shape<start = 2>(like)
        split = Concat<axis = 0>(t, u, v)\n y = Reshape(b, split) }"""
    assert_left_alone(RULE, text, known={"B": 3, "S": 2, "T": 4})


ALONE = {
    "two are split": graph("4,6,8", "2,2,8,2,3", "4, 6, 8", "2, 2, 8, 2, 3"),
    "dimensions are merged": graph("2,4,6,8", "64,6", "-1, 6, 8", "64, 6", "0, 2, 1"),
    "elements go elsewhere": graph("2,4,6,8", "4,2,6,8", "-1, 6, 8", "4, 2, 6, 8"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
