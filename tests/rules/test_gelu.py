"""fuse/gelu: the orders in which it is written, and what only looks like it."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/gelu"
CONSTANTS = "float root = {1.4142135}, float inverse = {0.70710677}, float one = {1}, float half = {0.5}"


def gelu(product: str, scaled: str = "Div(x, root)", total: str = "Add(b, one)", constants: str = CONSTANTS) -> str:
    return f"g (float[N,3] x) => (float[N,3] y) <{constants}> {{ a = {scaled}\n b = Erf(a)\n c = {total}\n {product} }}"


PRODUCTS = (
    "d = Mul(x, c)\n y = Mul(d, half)",
    "d = Mul(c, x)\n y = Mul(half, d)",
    "d = Mul(c, half)\n y = Mul(x, d)",
    "d = Mul(x, half)\n y = Mul(d, c)",
)


@pytest.mark.parametrize("scaled", ["Div(x, root)", "Mul(x, inverse)", "Mul(inverse, x)"])
@pytest.mark.parametrize("total", ["Add(b, one)", "Add(one, b)"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_rewritten(product: str, scaled: str, total: str) -> None:
    assert_rewritten(RULE, "Gelu", gelu(product, scaled, total), opset=20)


REFUSED = {
    "an old opset": ("opset 17 has no Gelu", gelu(PRODUCTS[0]), 17),
    "two readers": ("used elsewhere", gelu("d = Mul(x, c)\n e = Mul(d, half)\n y = Add(e, c)"), 20),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


ALONE = {
    "another root": gelu(PRODUCTS[0], constants=CONSTANTS.replace("1.4142135", "1.41")),
    "another half": gelu(PRODUCTS[0], constants=CONSTANTS.replace("0.5", "0.51")),
    "another one": gelu(PRODUCTS[0], constants=CONSTANTS.replace("{1}", "{2}")),
    "the root divided by x": gelu(PRODUCTS[0], "Div(root, x)"),
    "another value": gelu("e = Neg(x)\n d = Mul(e, c)\n y = Mul(d, half)"),
    "a constant that raises the rank": gelu(PRODUCTS[0], constants=CONSTANTS.replace("float half", "float[1,1,1] half"))
    .replace("y = Mul", "z = Mul")
    .replace(" }", "\n y = ReduceSum<keepdims = 0>(z) }")
    .replace("float[N,3] y", "float y"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case], opset=20)
