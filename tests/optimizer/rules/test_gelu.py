"""fuse/gelu: the orders in which it is written, and what only looks like it."""

from __future__ import annotations

import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
from tests.refusals import refusals, refuses
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
    "1: an old opset": ("opset 17 has no Gelu", gelu(PRODUCTS[0]), 17),
    "2: two readers": ("used elsewhere", gelu("d = Mul(x, c)\n e = Mul(d, half)\n y = Add(e, c)"), 20),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 3)
def test_a_dtype_that_callers_decide() -> None:
    """In a function, whose values have no dtype; the constants are its own."""
    numbers = {"root": 1.4142135, "half": 0.5, "one": 1}
    constants = "\n ".join(f"{name} = Constant<value = float {{{n}}}>()" for name, n in numbers.items())
    body = gelu(PRODUCTS[0]).split("{ a =", 1)[1]
    model = from_text(f"""<ir_version: 10, opset_import: ["": 20, "f": 1]>
        g (float[N,3] x) => (float[N,3] y) {{ y = f.gelu(x) }}
        <domain: "f", opset_import: ["": 20]> gelu (x) => (y) {{ {constants}\n a ={body}""")
    result, part = simplified(model)
    assert not [entry for entry in part.fired if entry.rule == RULE]
    assert any(entry.rule == RULE and "dtype" in entry.why_not for entry in part.refused)
    assert verify_models(model, result, Verify(runtime="reference")).equal


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


TANH = """float slope = {0.7978846}, float cubic = {0.044715}, float both = {0.035677407}, float three = {3},
    float two = {2}, float one = {1}, float half = {0.5}"""
INSIDE = {
    "as torch writes it": "c = Pow(x, three)\n d = Mul(c, cubic)\n e = Add(x, d)\n a = Mul(e, slope)",
    "the slope first": "c = Pow(x, three)\n d = Mul(cubic, c)\n e = Add(d, x)\n a = Mul(slope, e)",
    "products instead of a power": "c = Mul(x, x)\n d = Mul(c, x)\n e = Mul(cubic, d)\n f = Add(x, e)\n"
    " a = Mul(f, slope)",
    "x taken out": "c = Pow(x, two)\n d = Mul(c, cubic)\n e = Add(d, one)\n f = Mul(x, slope)\n a = Mul(f, e)",
    "the slope in both summands": "c = Pow(x, three)\n d = Mul(c, both)\n e = Mul(x, slope)\n a = Add(e, d)",
}
OUTSIDE = {
    "x halved": "h = Mul(x, half)\n y = Mul(h, s)",
    "the whole halved": "h = Mul(x, s)\n y = Mul(h, half)",
    "the sum halved": "h = Mul(half, s)\n y = Mul(h, x)",
    "divided by two": "h = Mul(x, s)\n y = Div(h, two)",
}


def tanh(inside: str, outside: str, constants: str = TANH) -> str:
    return (
        f"g (float[N,3] x) => (float[N,3] y) <{constants}> {{ {inside}\n t = Tanh(a)\n s = Add(t, one)\n {outside} }}"
    )


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("outside", OUTSIDE)
def test_the_approximation(inside: str, outside: str) -> None:
    result = assert_rewritten(RULE, "Gelu", tanh(INSIDE[inside], OUTSIDE[outside]), opset=20)
    assert result.graph[0].attributes["approximate"].as_string() == "tanh"


def test_the_approximation_in_half_precision() -> None:
    names = ("slope", "cubic", "three", "one", "half")
    casts = "\n ".join(f"{name} = Cast<to = 10>({name}_wide)" for name in names)
    constants = ", ".join(part.replace(" = {", "_wide = {") for part in TANH.split(", ") if part.split()[1] in names)
    text = tanh(f"{casts}\n x = Add(z, z)\n {INSIDE['as torch writes it']}", OUTSIDE["x halved"], constants)
    text = text.replace("float[N,3] x", "float16[N,3] z").replace("float[N,3] y", "float16[N,3] y")
    assert_rewritten(RULE, "Add Gelu", text, opset=20)


def test_the_constants_of_the_approximation_count() -> None:
    text = tanh(INSIDE["as torch writes it"], OUTSIDE["x halved"])
    for wrong in ("0.0447", "0.0448"):
        assert_left_alone(RULE, text.replace("0.044715", wrong), opset=20)
    assert_left_alone(RULE, text.replace("three = {3}", "three = {2}"), opset=20)
    assert_left_alone(RULE, text.replace("s = Add(t, one)", "s = Sub(t, one)"), opset=20)


def test_half_of_each_summand() -> None:
    text = gelu("d = Mul(c, x)\n y = Identity(d)", total="Add(e, half)").replace(
        "b = Erf(a)", "b = Erf(a)\n e = Mul(b, half)"
    )
    assert_rewritten(RULE, "Gelu", text, opset=20)


def test_what_a_caller_may_replace_is_no_constant() -> None:
    text = gelu(PRODUCTS[0]).replace("x) =>", "x, float half) =>")
    assert_left_alone(RULE, text, opset=20)
