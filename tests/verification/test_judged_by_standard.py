"""Where onnxruntime refuses or fails on what the standard allows, the reference evaluator judges, within a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
FAILING = {
    "a kernel that fails in every run": (
        "g (float[2,3] x, float[3] s, float[3] b) => (float[2,3] y) { y = InstanceNormalization(x, s, b) }"
    ),
    "a kernel that fails on its argument": (
        'g (float[4] x) => (float[12] y) <int64[2] p = {3, 5}> { y = Pad<mode = "reflect">(x, p) }'
    ),
    "a kernel that refuses its attribute": (
        "g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[3,1,1,2] y) "
        "{ y = LSTM<hidden_size = 2, layout = 1>(x, w, r) }"
    ),
    "a name that two nodes have": "g (float[2,3] x) => (float[2,3] y) { [n] a = Relu(x) [n] y = Neg(a) }",
}


NORM = FAILING["a kernel that fails in every run"]
WRONG = HEAD + NORM.replace("y = Inst", "a = Inst").replace(") }", ") y = Neg(a) }")


@pytest.mark.parametrize("kind", FAILING)
def test_the_reference_evaluator_judges(kind: str) -> None:
    model = from_text(HEAD + FAILING[kind])
    found = verify_models(model, model)
    assert found.equal
    assert "run on reference: onnxruntime refused or failed: " in ending(found)


def test_a_wrong_model_is_found_there() -> None:
    assert verify_models(from_text(HEAD + NORM), from_text(WRONG)).differs


def test_a_candidate_on_which_the_runtime_fails_is_not_judged_elsewhere() -> None:
    """The runtime runs the original, so its users need a model that it runs."""
    right = HEAD + 'g (float[4] x) => (float[m] y) <int64[2] p = {3, 3}> { y = Pad<mode = "reflect">(x, p) }'
    found = verify_models(from_text(right), from_text(right.replace("{3, 3}", "{3, 5}")))
    assert found.differs
    assert "reference" not in ending(found)


def test_a_model_that_the_standard_refuses_is_not_judged(refused: Refused) -> None:
    text = HEAD + "g (float[2,3] x) => (float[2,3] y) { a = MatMul(x, x) y = Relu(a) }"
    with refused("runtime/failed") as refusal:
        verify_models(from_text(text), from_text(text))
    assert "reference evaluator" not in refusal.problem.why


def test_a_named_runtime_is_kept_to(refused: Refused) -> None:
    model = from_text(HEAD + FAILING["a kernel that fails on its argument"])
    with refused("verify/no-valid-input"):
        verify_models(model, model, Verify(runtime="onnxruntime"))


def test_where_both_fail_the_first_error_is_told(refused: Refused) -> None:
    text = HEAD + "g (float[2,3,4] x) => (float[2,3,4] y) { y = LRN<size = 2>(x) }"
    with refused("runtime/failed") as refusal:
        verify_models(from_text(text), from_text(text))
    assert "LRN" in refusal.problem.why
    assert "the reference evaluator could not decide either" in refusal.problem.why


SLOW = """g (float[2,3] x, float[3] s, float[3] b) => (float[2,3] y) <int64 n = {100000000}, bool t = {1}> {
    i = InstanceNormalization(x, s, b)
    y = Loop(n, t, i) <body = body (int64 k, bool go, float[2,3] a) => (bool on, float[2,3] c) {
        on = Identity(go) c = Neg(a) }>
}"""


def test_its_runs_end_within_a_limit(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_choice, "_STANDARD_SECONDS", 3.0)
    begin = time.monotonic()
    model = from_text(HEAD + SLOW)
    with refused("verify/no-valid-input") as refusal:
        verify_models(model, model)
    assert "the reference evaluator could not decide either" in refusal.problem.why
    assert time.monotonic() - begin < 60


def test_simplify() -> None:
    text = HEAD + NORM.replace("{ y =", "{ z = Identity(x) y =").replace("(x, s, b)", "(z, s, b)")
    result = onnxsmith.simplify(from_text(text))
    assert result.ok
    assert "run on reference: onnxruntime refused or failed" in result.report.headline


def edited(text: str, step: Callable[[Any], None]) -> Result:
    with onnxsmith.edit(from_text(text)) as m:
        step(m)
    assert m.result is not None
    assert m.result.ok
    return m.result


BEHIND = HEAD + NORM.replace("y = Inst", "a = Inst").replace(") }", ") y = Relu(a) }")


@pytest.mark.parametrize(
    "step",
    [
        lambda m: m.rename(tensor="y", to="z"),
        lambda m: m.opset(to=18),
        lambda m: m.layout(input="x", to="1,0"),
    ],
    ids=["rename", "opset", "layout"],
)
def test_edit(step: Callable[[Any], None]) -> None:
    assert "run on reference: onnxruntime refused or failed" in edited(BEHIND, step).report.headline


def test_edit_of_the_outputs() -> None:
    """No output is left to compare, so that the edited model is only run."""
    edited(BEHIND, lambda m: m.expose(tensor="a"))


def test_compare() -> None:
    right = from_text(HEAD + NORM)
    found = onnxsmith.compare(right, right, thorough=True).report
    assert found.verdict is Verdict.DONE
    assert "run on reference: onnxruntime refused or failed" in found.headline
    assert onnxsmith.compare(right, from_text(WRONG)).report.verdict is Verdict.DIFFERENT


def test_run() -> None:
    values = {"x": np.ones((2, 3), np.float32), "s": np.ones(3, np.float32), "b": np.ones(3, np.float32)}
    result = onnxsmith.run(from_text(HEAD + NORM), values)
    assert np.array_equal(result.outputs["y"], values["x"])
    assert any("run on reference" in note for note in result.report.notes)
