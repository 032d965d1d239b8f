"""Factors of a written-out activation stay in it, so that a runtime or a newer opset makes one operator of it."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery.opset_conversion import convert
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.rewrites import assert_rewritten, head

WEIGHTS = """float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}, float[2,3,1,1] v = {6, 5, 4, 3, 2, 1},
    float root = {1.4142135}, float one = {1}, float half = {0.5}, float[1] three = {3}"""
GELU = "d = Div(a, root)\n e = Erf(d)\n f = Add(e, one)\n p = Mul(a, f)\n h = Mul(p, half)"
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


def between(body: str, last: str = "Conv(h, v)", more: str = "") -> str:
    return f"g (float[N,2,4,4] x) => (float[N,2,4,4] y) <{WEIGHTS}{more}> {{ a = Conv(x, w, b)\n {body}\n y = {last} }}"


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


def test_gelu_is_one_operator() -> None:
    assert_rewritten("fuse/gelu", "Conv Gelu Conv", between(GELU), opset=20)
