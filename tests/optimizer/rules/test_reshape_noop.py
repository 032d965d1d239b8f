"""shape/reshape-noop: what changes no dimension, for every size."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "shape/reshape-noop"


@pytest.mark.parametrize("target", ["-1, 4", "0, 4", "0, -1"])
def test_a_reshape(target: str) -> None:
    text = (
        f"g (float[batch,4] x) => (float[batch,4] y) <int64[2] t = {{{target}}}> {{ a = Reshape(x, t)\n y = Relu(a) }}"
    )
    assert_rewritten(RULE, "Relu", text)


@pytest.mark.parametrize("call", ["Flatten<axis = 1>(x)", "Squeeze(x, none)", "Unsqueeze(x, none)"])
def test_its_relatives(call: str) -> None:
    constant = " <int64[0] none = {}>" if "none" in call else ""
    text = f"g (float[batch,4] x) => (float[batch,4] y){constant} {{ a = {call}\n y = Relu(a) }}"
    assert_rewritten(RULE, "Relu", text)


def test_there_and_back() -> None:
    text = """g (float[n,6] x) => (float[n,6] y) <int64[3] t = {0, 2, 3}, int64[2] u = {0, 6}> {
        a = Reshape(x, t)\n b = Reshape(a, u)\n y = Relu(b) }"""
    assert_rewritten(RULE, "Relu", text)


@pytest.mark.parametrize("target", ["4, -1", "-1, 2", "2, 4"])
def test_another_shape_stays(target: str) -> None:
    text = f"g (float[batch,4] x) => (float[p,q] y) <int64[2] t = {{{target}}}> {{ a = Reshape(x, t)\n y = Relu(a) }}"
    assert_left_alone(RULE, text)
