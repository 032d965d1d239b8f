"""fuse/swish and fuse/hardswish."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

SIXTH = "HardSigmoid<alpha = 0.16666667>"


@pytest.mark.parametrize("product", ["Mul(x, a)", "Mul(a, x)"])
def test_either_order(product: str) -> None:
    text = f"g (float[N] x) => (float[N] y) {{ a = Sigmoid(x)\n y = {product} }}"
    assert_rewritten("fuse/swish", "Swish", text, opset=24)
    assert_rewritten("fuse/hardswish", "HardSwish", text.replace("Sigmoid", SIXTH))


REFUSED = {
    "an old opset": ("fuse/swish", "opset 17 has no Swish", "Sigmoid", "y = Mul(x, a)", 17),
    "an old opset, hard": ("fuse/hardswish", "opset 13 has no HardSwish", SIXTH, "y = Mul(x, a)", 13),
    "the default slope": ("fuse/hardswish", "another slope", "HardSigmoid", "y = Mul(x, a)", 17),
    "another offset": ("fuse/hardswish", "another slope", SIXTH.replace(">", ", beta = 0.4>"), "y = Mul(x, a)", 17),
    "two readers": ("fuse/swish", "used elsewhere", "Sigmoid", "b = Mul(x, a)\n y = Add(a, b)", 24),
    "two readers, hard": ("fuse/hardswish", "used elsewhere", SIXTH, "b = Mul(x, a)\n y = Add(a, b)", 17),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    rule, reason, gate, rest, opset = REFUSED[case]
    assert_refused(rule, reason, f"g (float[N] x) => (float[N] y) {{ a = {gate}(x)\n {rest} }}", opset)


def test_the_gate_of_another_value() -> None:
    text = "g (float[N] x, float[N] z) => (float[N] y) { a = Sigmoid(z)\n y = Mul(x, a) }"
    assert_left_alone("fuse/swish", text, opset=24)
