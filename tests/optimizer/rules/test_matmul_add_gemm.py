"""fuse/matmul-add-gemm: matrices only, and constants of one row."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/matmul-add-gemm"
W = "float[2,2] w = {1, 2, 3, 4}"


@pytest.mark.parametrize(
    "constant", ["float c = {1}", "float[1] c = {1}", "float[1,2] c = {1, 2}", "float[2] c = {1, 2}"]
)
def test_rewritten(constant: str) -> None:
    text = f"g (float[N,2] x) => (float[N,2] y) <{W}, {constant}> {{ a = MatMul(x, w)\n y = Add(c, a) }}"
    assert_rewritten(RULE, "Gemm", text)


REFUSED = {
    "2: three dimensions": (
        "two matrices",
        f"g (float[B,N,2] x) => (float[B,N,2] y) <{W}, float[2] c = {{1, 2}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}",
    ),
    "2: a vector": (
        "two matrices",
        f"g (float[2] x) => (float[2] y) <{W}, float[2] c = {{1, 2}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}",
    ),
    "4: two rows": (
        "one row",
        (
            f"g (float[2,2] x) => (float[2,2] y) "
            f"<{W}, float[2,2] c = {{1, 2, 3, 4}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}"
        ),
    ),
    "4: a row that widens": (
        "one row",
        (
            "g (float[N,2] x) => (float[N,2] y) "
            "<float[2,1] w = {1, 2}, float[2] c = {1, 2}> { a = MatMul(x, w)\n y = Add(a, c) }"
        ),
    ),
    "3: integers": (
        "dtype",
        (
            f"g (int32[N,2] x) => (int32[N,2] y) "
            f"<int32{W[5:]}, int32[2] c = {{1, 2}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}"
        ),
    ),
    "1: two readers": (
        "used elsewhere",
        (
            f"g (float[N,2] x) => (float[N,2] y) "
            f"<{W}, float c = {{1}}> {{ a = MatMul(x, w)\n b = Add(a, c)\n y = Mul(a, b) }}"
        ),
    ),
    "4: a higher rank": (
        "one row",
        f"""g (float[N,2] x) => (float[1,N,2] y) <{W}, float[1,1,2] c = {{1, 2}}> {{
            a = MatMul(x, w)\n y = Add(a, c) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_a_default_that_a_caller_may_replace() -> None:
    text = (
        f"g (float[N,2] x, float[2] c) => (float[N,2] y) "
        f"<{W}, float[2] c = {{1, 2}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}"
    )
    assert_left_alone(RULE, text)


def test_zeros_are_left_alone() -> None:
    text = f"g (float[N,2] x) => (float[N,2] y) <{W}, float[2] c = {{0, 0}}> {{ a = MatMul(x, w)\n y = Add(a, c) }}"
    assert_left_alone(RULE, text)
