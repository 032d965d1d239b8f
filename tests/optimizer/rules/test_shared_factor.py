"""fuse/shared-factor: factors that both linear operators can take."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery.opset_conversion import convert
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/shared-factor"
WEIGHTS = """float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}, float[2,3,1,1] v = {6, 5, 4, 3, 2, 1},
    float root = {1.4142135}, float one = {1}, float half = {0.5}, float[1] three = {3}"""
GELU = "d = Div(a, root)\n e = Erf(d)\n f = Add(e, one)\n p = Mul(a, f)\n h = Mul(p, half)"


def between(body: str, first: str = "Conv(x, w, b)", last: str = "Conv(h, v)", more: str = "") -> str:
    return f"g (float[N,2,4,4] x) => (float[N,2,4,4] y) <{WEIGHTS}{more}> {{ a = {first}\n {body}\n y = {last} }}"


@pytest.mark.parametrize("step", ["Div(a, root)", "Mul(a, half)", "Mul(half, a)"])
@pytest.mark.parametrize("product", ["Mul(a, e)", "Mul(e, a)"])
def test_rewritten(step: str, product: str) -> None:
    assert_rewritten(RULE, "Conv Erf Mul Conv", between(f"d = {step}\n e = Erf(d)\n h = {product}"))


TANH = """c = Mul(a, a)\n e = Mul(c, a)\n f = Mul(e, cubic)\n i = Add(a, f)\n j = Mul(i, slope)\n t = Tanh(j)
    q = Add(t, one)\n p = Mul(a, q)\n h = Mul(p, half)"""
WRITTEN_OUT = {
    "Gelu": (GELU, "Div Erf Add Mul Mul", 20),
    "Gelu with its half in front": (
        "s = Mul(a, half)\n d = Div(a, root)\n e = Erf(d)\n f = Add(e, one)\n h = Mul(s, f)",
        "Mul Div Erf Add Mul",
        20,
    ),
    "Gelu by tanh": (TANH, "Mul Mul Mul Add Mul Tanh Add Mul Mul", 20),
    "Swish": ("d = Mul(a, slope)\n e = Sigmoid(d)\n h = Mul(a, e)", "Mul Sigmoid Mul", 24),
}


@pytest.mark.parametrize("activation", WRITTEN_OUT)
def test_an_activation_stays_whole_for_a_runtime_or_a_newer_opset(activation: str) -> None:
    body, operators, since = WRITTEN_OUT[activation]
    constants = ", float cubic = {0.044715}, float slope = {0.7978845608}"
    kept, _ = simplified(from_text(head(17) + between(body, more=constants)))
    assert [node.op_type for node in kept.graph] == ["Conv", *operators.split(), "Conv"]
    newer, _ = simplified(convert(kept, since))
    assert [node.op_type for node in newer.graph] == ["Conv", activation.split()[0], "Conv"]


@pytest.mark.parametrize("after", ["y = Mul(h, three)", "k = Transpose<perm = [0, 2, 3, 1]>(h)\n y = Mul(k, three)"])
def test_a_factor_after_it_stays_outside(after: str) -> None:
    text = between(f"{GELU}\n {after}", last="Tanh(h)").replace("y = Tanh(h)", "").replace("N,2,4,4] y", "A,B,C,D] y")
    kept, _ = simplified(from_text(head(17) + text))
    made = [node.op_type for node in kept.graph if node.op_type != "Transpose"]
    assert made == ["Conv", "Div", "Erf", "Add", "Mul", "Mul", "Mul"]


def test_gelu_is_left_to_its_operator() -> None:
    text = between(GELU)
    assert_rewritten("fuse/gelu", "Conv Gelu Conv", text, opset=20)
    assert_left_alone(RULE, text, opset=20)


def test_with_a_bias_of_its_own() -> None:
    text = """g (float[N,3,2] x) => (float[N,3,2] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3},
    float[3,2] v = {6, 5, 4, 3, 2, 1}, float root = {1.4142135}> {
        m = MatMul(x, w)\n a = Add(b, m)\n d = Div(a, root)\n e = Erf(d)\n h = Mul(a, e)\n y = MatMul(h, v) }"""
    assert_rewritten(RULE, "MatMul Add Erf Mul MatMul", text)


def test_the_product_stands_first() -> None:
    text = between(
        "q = Tanh(x)\n s = ReduceMax<axes = [1], keepdims = 1>(q)\n h = Mul(a, s)\n d = Div(a, root)\n z = Erf(d)"
    )
    assert_rewritten(RULE, "Conv Tanh ReduceMax Mul Erf Conv", text.replace("4] y)", "4] y, float[N,3,4,4] z)"))


def test_in_a_branch() -> None:
    text = f"""g (float[N,2,4,4] x, bool f) => (float[N,2,4,4] y) <{WEIGHTS}> {{
        y = If (f) <then_branch = t () => (float[N,2,4,4] p) {{
            a = Conv(x, w, b)\n d = Div(a, root)\n e = Erf(d)\n h = Mul(a, e)\n p = Conv(h, v) }},
                    else_branch = e () => (float[N,2,4,4] q) {{ q = Neg(x) }}> }}"""
    result = assert_rewritten(RULE, "If", text, runtime="onnxruntime")
    branch = result.graph.node(0).attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["Conv", "Erf", "Mul", "Conv"]


BODY = "d = Div(a, root)\n e = Erf(d)\n h = Mul(a, e)"
REFUSED = {
    "1: first weights that others read": (
        "weights are used elsewhere",
        between(BODY, last="Conv(h, v)\n z = Conv(x, w)"),
    ),
    "1: second weights that others read": (
        "weights are used elsewhere",
        between(BODY, last="Conv(h, v)\n z = Conv(e, v)"),
    ),
    "1: weights that a caller may replace": (
        "not constants",
        between(BODY).replace("4] x)", "4] x, float[3,2,1,1] w)"),
    ),
    "2: a product that overflows": (
        "out of the range",
        between(BODY.replace("root", "small"), more=", float small = {1e-38}").replace("5, 6}", "5, 600}"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    reason, text = REFUSED[case]
    if "z = " in text:
        channels = 2 if "Conv(e" in text else 3
        text = text.replace("4] y)", f"4] y, float[N,{channels},4,4] z)")
    assert_refused(RULE, reason, text)


LEFT_ALONE = {
    "a third reader": between(BODY + "\n z = Tanh(a)").replace("4] y)", "4] y, float[N,3,4,4] z)"),
    "a product that is an output": between(BODY).replace("4] y)", "4] y, float[N,3,4,4] h)"),
    "a factor for each channel": between(BODY.replace("root", "each"), more=", float[3,1,1] each = {1, 2, 3}"),
    "no linear operator after it": between(BODY, last="ReduceSum(h, axes)", more=", int64[1] axes = {1}").replace(
        "(float[N,2,4,4] y)", "(float[N,1,4,4] y)"
    ),
    "no linear operator before it": between(
        BODY, first="Tanh(x)", last="Conv(h, u)", more=", float[2,2,1,1] u = {1, 2, 3, 4}"
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
