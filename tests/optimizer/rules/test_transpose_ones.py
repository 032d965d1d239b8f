"""algebra/transpose-ones: rows of Transposes and Reshapes, and dimensions that may be more than 1."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/transpose-ones"
CONSTANTS = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] last = {-1}, int64[2] flat = {0, -1}"


def row(body: str, x: str = "N,36,1,T", y: str = "A,B,C,D", last: str = "y = Relu(b)") -> str:
    return f"g (float[{x}] x) => (float[{y}] y) <{CONSTANTS}> {{ {body}\n {last} }}"


REWRITTEN = {
    "Transpose, then Squeeze and Unsqueeze": (
        "Transpose Relu",
        row("a = Transpose<perm = [0, 2, 3, 1]>(x)\n s = Squeeze(a, one)\n b = Unsqueeze(s, last)"),
    ),
    "Unsqueeze, then Transpose and Squeeze": (
        "Transpose Relu",
        row("u = Unsqueeze(x, zero)\n t = Transpose<perm = [1, 3, 2, 0]>(u)\n b = Squeeze(t, last)", "N,3,T", "A,B,C"),
    ),
    "nothing is left": (
        "Relu",
        row("t = Transpose<perm = [0, 2, 1, 3]>(x)\n s = Squeeze(t, one)\n b = Unsqueeze(s, two)"),
    ),
    "nothing but a Reshape is left": (
        "Squeeze Relu",
        row("t = Transpose<perm = [0, 2, 1, 3]>(x)\n b = Squeeze(t, one)", y="A,B,C"),
    ),
    "Flatten": ("Squeeze Relu", row("t = Transpose<perm = [0, 2, 1]>(x)\n b = Flatten(t)", "N,1,T", "A,B")),
    "two Transposes": (
        "Transpose Relu",
        row(
            "t = Transpose<perm = [2, 1, 0, 3]>(x)\n s = Squeeze(t, zero)\n u = Unsqueeze(s, last)\n"
            " b = Transpose<perm = [1, 2, 0, 3]>(u)"
        ),
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    ops, text = REWRITTEN[case]
    result = assert_rewritten(RULE, ops, text)
    assert len(result.graph) == len(ops.split())


def test_an_output_that_is_the_input() -> None:
    text = row("t = Transpose<perm = [0, 2, 1, 3]>(x)\n s = Squeeze(t, one)", last="y = Unsqueeze(s, two)")
    assert_rewritten(RULE, "Identity", text)


@refuses(RULE, 1)
def test_another_reader() -> None:
    text = row("t = Transpose<perm = [0, 2, 3, 1]>(x)\n s = Squeeze(t, one)\n b = Unsqueeze(s, last)\n z = Neg(s)")
    assert_refused(RULE, "used elsewhere", text.replace("D] y)", "D] y, float[E,F,G] z)"))


LEFT_ALONE = {
    "other dimensions change": row("t = Transpose<perm = [0, 2, 3, 1]>(x)\n b = Reshape(t, flat)", y="A,B"),
    "a dimension that may be 1": row(
        "t = Transpose<perm = [0, 2, 3, 1]>(x)\n s = Squeeze(t, one)\n b = Unsqueeze(s, last)", "N,36,M,T"
    ),
    "neither": row("t = Transpose<perm = [0, 2, 3, 1]>(x)\n b = Squeeze(t, one)", y="A,B,C"),
    "no Transpose": row("s = Squeeze(x, two)\n b = Unsqueeze(s, one)"),
    "one Transpose": row("b = Transpose<perm = [0, 2, 1, 3]>(x)"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
