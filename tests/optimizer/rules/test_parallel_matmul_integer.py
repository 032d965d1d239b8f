"""fuse/parallel-matmul-integer: biases, scales of columns, and what is not joined."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/parallel-matmul-integer"
JOINED = "DynamicQuantizeLinear MatMulInteger Cast Mul Mul"


def product(name: str, *, bias: bool = False, zero: bool = True) -> str:
    """One product of q with the matrix u, v or w, with its scale and its bias."""
    end = f"f{name}" if bias else f"y{name}"
    return f"""m{name} = MatMulInteger(q, {name}, z{f", {name}z" if zero else ""})\n c{name} = Cast<to = 1>(m{name})
        t{name} = Mul(s, {name}s)\n {end} = Mul(c{name}, t{name})
        {f"y{name} = Add(f{name}, {name}b)" if bias else ""}"""


def graph(nodes: str, outputs: str = "float[N,2] yu, float[N,3] yv", more: str = "") -> str:
    return f"""g (float[N,2] x) => ({outputs})
        <uint8[2,2] u = {{1, 2, 3, 4}}, uint8[2,3] v = {{9, 8, 7, 6, 5, 4}}, uint8 uz = {{3}},
         uint8[3] vz = {{1, 2, 3}}, float us = {{0.5}}, float[3] vs = {{0.25, 2, 3}},
         float[2] ub = {{1, -1}}, float[3] vb = {{2, 3, 4}}> {{
        q, s, z = DynamicQuantizeLinear(x)\n {nodes} {more} }}"""


def test_scales_and_zero_points_of_columns() -> None:
    assert_rewritten(RULE, f"{JOINED} Split", graph(product("u") + product("v")))


def test_biases() -> None:
    assert_rewritten(RULE, f"{JOINED} Add Split", graph(product("u", bias=True) + product("v", bias=True)))


def test_no_zero_point_is_zero() -> None:
    assert_rewritten(RULE, f"{JOINED} Split", graph(product("u", zero=False) + product("v")))


@refuses(RULE, 1)
def test_a_product_that_is_read_elsewhere() -> None:
    outputs = "float[N,2] yu, float[N,3] yv, float z2"
    text = graph(product("u", bias=True) + product("v", bias=True), outputs, "z2 = Neg(tu)")
    assert_refused(RULE, "used elsewhere", text)


@refuses(RULE, 2)
def test_a_matrix_that_is_read_elsewhere() -> None:
    outputs = "float[N,2] yu, float[N,3] yv, uint8[N,1,3] w"
    more = "i = ArgMax<axis = 1>(x)\n w = Gather(v, i)"
    assert_refused(RULE, "the matrix is also used elsewhere", graph(product("u") + product("v"), outputs, more))


@refuses(RULE, 3)
def test_products_that_are_much_wider() -> None:
    wide = ", ".join(["1"] * 9)
    text = f"""g (float[N,2] x) => (float[N,9] yu, float[N,9] yv)
        <uint8[2,9] u = {{{wide}, {wide}}}, uint8[2,9] v = {{{wide}, {wide}}}, uint8 uz = {{3}}, uint8 vz = {{2}},
         float us = {{0.5}}, float vs = {{0.25}}> {{
        q, s, z = DynamicQuantizeLinear(x)\n {product("u")} {product("v")} }}"""
    assert_refused(RULE, "much wider", text)


LEFT_ALONE = {
    "one has no bias": graph(product("u", bias=True) + product("v")),
    "another left operand": graph(
        "n = Neg(x)\n p, r, o = DynamicQuantizeLinear(n)\n"
        + product("u")
        + product("v").replace("(q, v", "(p, v").replace("(s, vs", "(r, vs")
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
