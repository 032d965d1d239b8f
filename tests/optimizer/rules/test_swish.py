"""fuse/swish, fuse/hardswish, fuse/hard-sigmoid and fuse/mish."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplify import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

SIXTH = "HardSigmoid<alpha = 0.16666667>"


@pytest.mark.parametrize("product", ["Mul(x, a)", "Mul(a, x)"])
def test_either_order(product: str) -> None:
    text = f"g (float[N] x) => (float[N] y) {{ a = Sigmoid(x)\n y = {product} }}"
    assert_rewritten("fuse/swish", "Swish", text, opset=24)
    assert_rewritten("fuse/hardswish", "HardSwish", text.replace("Sigmoid", SIXTH))


REFUSED = {
    "1: an old opset": ("opset 17 has no Swish", "y = Mul(x, a)", "float", 17),
    "2: two readers": ("used elsewhere", "b = Mul(x, a)\n y = Add(a, b)", "float", 24),
    "3: bfloat16": ("dtype", "y = Mul(x, a)", "bfloat16", 24),
}


@pytest.mark.parametrize("case", refusals("fuse/swish", REFUSED))
def test_swish_refused(case: str) -> None:
    reason, end, dtype, opset = REFUSED[case]
    text = f"g ({dtype}[N] x) => ({dtype}[N] y) {{ a = Sigmoid(x)\n {end} }}"
    assert_refused("fuse/swish", reason, text, opset)


HARD_REFUSED = {
    "1: an old opset": ("opset 13 has no HardSwish", SIXTH, "y = Mul(x, a)", "float", 13),
    "2: the default slope": ("another slope", "HardSigmoid", "y = Mul(x, a)", "float", 17),
    "2: another offset": ("another slope", SIXTH.replace(">", ", beta = 0.4>"), "y = Mul(x, a)", "float", 17),
    "3: two readers": ("used elsewhere", SIXTH, "b = Mul(x, a)\n y = Add(a, b)", "float", 17),
    "4: bfloat16": ("dtype", SIXTH, "y = Mul(x, a)", "bfloat16", 22),
}


@pytest.mark.parametrize("case", refusals("fuse/hardswish", HARD_REFUSED))
def test_hardswish_refused(case: str) -> None:
    reason, gate, end, dtype, opset = HARD_REFUSED[case]
    text = f"g ({dtype}[N] x) => ({dtype}[N] y) {{ a = {gate}(x)\n {end} }}"
    assert_refused("fuse/hardswish", reason, text, opset)


@refuses("fuse/hardswish", 2)
def test_a_slope_that_callers_decide() -> None:
    model = from_text("""<ir_version: 10, opset_import: ["": 17, "f": 1]>
        g (float[N] x) => (float[N] y) { y = f.h<slope = 0.3>(x) }
        <domain: "f", opset_import: ["": 17]>
        h <slope> (x) => (y) { a = HardSigmoid<alpha: float = @slope>(x)\n y = Mul(x, a) }""")
    _, part = simplified(model, only=["fuse/hardswish"])
    assert not part.fired
    assert ["another slope" in entry.why_not for entry in part.refused] == [True]


def test_the_gate_of_another_value() -> None:
    text = "g (float[N] x, float[N] z) => (float[N] y) { a = Sigmoid(z)\n y = Mul(x, a) }"
    assert_left_alone("fuse/swish", text, opset=24)


def test_swish_with_a_slope() -> None:
    text = "g (float[N] x) => (float[N] y) <float a = {1.702}> { s = Mul(a, x)\n b = Sigmoid(s)\n y = Mul(b, x) }"
    result = assert_rewritten("fuse/swish", "Swish", text, opset=24)
    assert abs(result.graph[0].attributes["alpha"].as_float() - 1.702) < 1e-6
    scaled = text.replace("Mul(b, x)", "Mul(b, s)")
    assert_rewritten("fuse/swish", "Mul Swish", scaled, opset=24)
    assert_left_alone("fuse/swish", text.replace("Mul(a, x)", "Add(a, x)"), opset=24)


CLIPPED = """float three = {3}, float low = {0}, float six = {6}, float sixth = {0.16666667}, float half = {0.5},
    float one = {1}"""
PRODUCTS = {
    "the product divided": "c = Mul(x, b)\n y = Div(c, six)",
    "the product times a sixth": "c = Mul(b, x)\n y = Mul(sixth, c)",
    "the gate divided": "c = Div(b, six)\n y = Mul(x, c)",
    "x times a sixth": "c = Mul(x, sixth)\n y = Mul(c, b)",
}


def clipped(end: str, start: str = "a = Add(x, three)", bounds: str = "low, six", dtype: str = "float") -> str:
    text = f"g (float[N] x) => (float[N] y) <{CLIPPED}> {{ {start}\n b = Clip(a, {bounds})\n {end} }}"
    return text.replace("float", dtype)


@pytest.mark.parametrize("product", PRODUCTS)
def test_hardswish_with_a_clip(product: str) -> None:
    text = clipped(PRODUCTS[product])
    result = assert_rewritten("fuse/hardswish", "HardSwish", text)
    assert len(result.graph.initializers) == 0
    result, _ = simplified(from_text(head(13) + text))
    assert [node.op_type for node in result.graph] == ["HardSigmoid", "Mul"]
    assert [node.op_type for node in simplified(result)[0].graph] == ["HardSigmoid", "Mul"]


def test_hardswish_with_a_clip_to_one() -> None:
    lines = "s = Mul(x, sixth)\n a = Add(s, half)"
    assert_rewritten("fuse/hardswish", "HardSwish", clipped("y = Mul(x, b)", lines, "low, one"))


def test_hardswish_with_bounds_as_attributes() -> None:
    text = clipped(PRODUCTS["the product divided"]).replace("Clip(a, low, six)", "Clip<min = 0.0, max = 6.0>(a)")
    assert_rewritten("fuse/hardswish", "HardSigmoid Mul", text, opset=10)


def test_hard_sigmoid_with_a_clip() -> None:
    assert_rewritten("fuse/hard-sigmoid", "HardSigmoid", clipped("y = Div(b, six)"))
    assert_rewritten("fuse/hard-sigmoid", "HardSigmoid", clipped("y = Mul(sixth, b)"))
    lines = clipped("y = Neg(b)", "s = Mul(x, six)\n a = Add(s, half)", "low, one")
    result = assert_rewritten("fuse/hard-sigmoid", "HardSigmoid Neg", lines)
    assert result.graph[0].attributes["alpha"].as_float() == 6
    assert result.graph[0].attributes["beta"].as_float() == 0.5


def test_clips_that_are_neither() -> None:
    for rule in ("fuse/hardswish", "fuse/hard-sigmoid"):
        for text in (
            clipped(PRODUCTS["the product divided"], "a = Add(x, six)"),
            clipped(PRODUCTS["the product divided"], bounds="low, three"),
            clipped("c = Mul(x, b)\n y = Div(c, three)"),
            clipped("y = Relu(b)", bounds="low, one"),
        ):
            assert_left_alone(rule, text)
        assert_left_alone(rule, "g (float[N] x) => (float[N] y) { a = Clip(x)\n y = Mul(x, a) }")


@refuses("fuse/hardswish", 3, 4)
@refuses("fuse/hard-sigmoid", 1, 2)
def test_clips_refused() -> None:
    for rule, end in (("fuse/hardswish", PRODUCTS["the product divided"]), ("fuse/hard-sigmoid", "y = Div(b, six)")):
        assert_refused(rule, "the dtype is unknown", clipped(end, dtype="double"))
        assert_refused(rule, "used elsewhere", clipped(end.replace("y =", "d =") + "\n y = Add(d, b)"))


MISH = "g (float[N] x) => (float[N] y) { a = Softplus(x)\n b = Tanh(a)\n y = Mul(b, x) }"
MISH_REFUSED = {
    "1: an old opset": ("opset 17 has no Mish", MISH, 17),
    "2: two readers": (
        "used elsewhere",
        MISH.replace("Mul(b, x)", "Sum(c, b)").replace("y =", "c = Mul(b, x)\n y ="),
        18,
    ),
    "3: bfloat16": ("dtype", MISH.replace("float", "bfloat16"), 22),
}


def test_mish() -> None:
    assert_rewritten("fuse/mish", "Mish", MISH, opset=18)
    assert_left_alone("fuse/mish", MISH.replace("Softplus", "Softsign"), opset=18)


@pytest.mark.parametrize("case", refusals("fuse/mish", MISH_REFUSED))
def test_mish_refused(case: str) -> None:
    assert_refused("fuse/mish", *MISH_REFUSED[case])
