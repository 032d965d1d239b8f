"""algebra/pad-noop: amounts that are all 0."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/pad-noop"
HEAD = "g (float[N,4] x) => (float[N,4] y)"


@pytest.mark.parametrize("opset", [10, 17])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_rewritten(opset: int, mode: str) -> None:
    how, more = (f'pads = [0, 0, 0, 0], mode = "{mode}"', "") if opset == 10 else (f'mode = "{mode}"', ", p")
    text = f"{HEAD} <int64[4] p = {{0, 0, 0, 0}}> {{ a = Pad<{how}>(x{more})\n y = Relu(a) }}"
    assert_rewritten(RULE, "Relu", text, opset=opset)


def test_a_value_from_outside() -> None:
    text = f"""{HEAD.replace("x)", "x, float v)", 1)} <int64[4] p = {{0, 0, 0, 0}}> {{
        a = Pad(x, p, v)\n y = Relu(a) }}"""
    assert_rewritten(RULE, "Relu", text)


@pytest.mark.parametrize("pads", ["0, 1, 0, -1", "0, -1, 0, 1"])
def test_amounts_that_cancel(pads: str) -> None:
    assert_left_alone(
        RULE, f"{HEAD} <int64[4] p = {{{pads}}}> {{ a = Pad(x, p)\n y = Relu(a) }}", runtime="onnxruntime"
    )


def test_amounts_from_outside() -> None:
    assert_left_alone(RULE, f"{HEAD.replace('x)', 'x, int64[4] p)', 1)} {{ a = Pad(x, p)\n y = Relu(a) }}")
