"""What cannot be run or repeated is cut out, and the parts around it are compared."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.model.text import from_text
from onnxsmith.report.parts.verification import Verification

HEAD = '<ir_version: 10, opset_import: ["": 20, "mine": 1]>\n'
AROUND = HEAD + "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)\n b = Neg(a)\n c = mine.Op(b)\n y = Abs(c) }"


def test_a_model_is_simplified_around_an_unknown_operator() -> None:
    result = onnxsmith.simplify(from_text(AROUND))
    assert result.ok
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Neg", "Op", "Abs"]
    assert "only the parts around" in result.report.part(Verification).notes[0]
    assert "1 Op" in result.report.part(Verification).notes[0]


@pytest.mark.parametrize(
    "wrong", ["b = Abs(x)\n c = mine.Op(b)\n y = Abs(c)", "b = Neg(x)\n c = mine.Op(b)\n y = Neg(c)"]
)
def test_a_wrong_part_before_or_after_is_found(wrong: str) -> None:
    other = from_text(f"{HEAD}g (float[N,3] x) => (float[N,3] y) {{ {wrong} }}")
    found = verify_models(from_text(AROUND), other)
    assert found.verified
    assert not found.equal


def test_random_numbers_are_cut_out() -> None:
    text = HEAD + "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)\n r = RandomNormalLike(a)\n y = Add(a, r) }"
    result = onnxsmith.simplify(from_text(text))
    assert result.ok
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["RandomNormalLike", "Add"]
    assert "1 RandomNormalLike" in result.report.part(Verification).notes[0]


def test_results_that_are_outputs_and_operands_that_are_inputs() -> None:
    text = (
        HEAD
        + "g (float[2] x, float[2] z) => (float[2] y, float[2] w) { y = mine.Op(x, z)\n v = Identity(y)\n w = Abs(v) }"
    )
    result = onnxsmith.simplify(from_text(text))
    assert result.ok
    assert result.model is not None
    assert [value.name for value in result.model.graph.outputs] == ["y", "w"]


def test_a_model_that_is_nothing_else_cannot_be_verified() -> None:
    text = HEAD + "g (float[2] x) => (float[2] y) { r = RandomNormal<shape = [2]>()\n y = mine.Op(x, r) }"
    with pytest.raises(onnxsmith.OnnxsmithError):
        verify_models(from_text(text), from_text(text.replace("mine.Op(x, r)", "mine.Other(x, r)")))
