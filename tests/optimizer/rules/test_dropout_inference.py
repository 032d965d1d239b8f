"""algebra/dropout-inference: what drops nothing, and what may."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "algebra/dropout-inference"
HEAD = "g (float[N] x) => (float[N] y)"


@pytest.mark.parametrize(
    ("opset", "call"),
    [(7, "Dropout<ratio = 0.3>(x)"), (10, "Dropout<ratio = 0.3>(x)"), (17, "Dropout(x)"), (17, "Dropout(x, half)")],
)
def test_rewritten(opset: int, call: str) -> None:
    constant = " <float half = {0.5}>" if "half" in call else ""
    assert_rewritten(RULE, "Relu", f"{HEAD}{constant} {{ a = {call}\n y = Relu(a) }}", opset=opset)


def test_training_that_is_switched_off() -> None:
    text = f"{HEAD} <float half = {{0.5}}, bool off = {{0}}> {{ a = Dropout(x, half, off)\n y = Relu(a) }}"
    assert_rewritten(RULE, "Relu", text)


def test_a_mask_that_nobody_reads() -> None:
    assert_rewritten(RULE, "Relu", f"{HEAD} {{ a, m = Dropout(x)\n y = Relu(a) }}")


@refuses(RULE, 1)
def test_refused_1_training_is_asked_at_run_time() -> None:
    text = """g (float[N] x, bool t) => (float[N] y) <float none = {0.0}> {
        a = Dropout(x, none, t)\n y = Relu(a) }"""
    assert_refused(RULE, "the Dropout may run in training mode", text, runtime="onnxruntime")


@refuses(RULE, 1)
def test_refused_1_training_is_asked_for() -> None:
    text = f"{HEAD} <float half = {{0.5}}, bool on = {{1}}> {{ a = Dropout(x, half, on)\n y = Relu(a) }}"
    assert_refused(RULE, "the Dropout may run in training mode", text)


@refuses(RULE, 1)
def test_refused_1_before_opset_7() -> None:
    from onnxsmith.graph.files.text import from_text
    from onnxsmith.optimizer.simplification_rounds import simplified
    from tests.rewrites import head

    _, part = simplified(from_text(head(6) + f"{HEAD} {{ a = Dropout<is_test = 0>(x)\n y = Relu(a) }}"))
    assert any(entry.rule == RULE and "the Dropout runs in training mode" in entry.why_not for entry in part.refused)


@refuses(RULE, 2)
def test_refused_2_the_mask_is_read() -> None:
    text = "g (float[N] x) => (float[N] y, bool[N] m) { a, m = Dropout(x)\n y = Relu(a) }"
    assert_refused(RULE, "its mask is read", text)
    inner = """g (float[N] x) => (float[N] y) { a, m = Dropout(x)\n c = Cast<to = 1>(m)\n y = Mul(a, c) }"""
    assert_refused(RULE, "its mask is read", inner)


def test_an_input_given_out_is_passed_on() -> None:
    assert_rewritten(RULE, "Identity", f"{HEAD} {{ y = Dropout(x) }}")
