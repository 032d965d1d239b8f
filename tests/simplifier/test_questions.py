"""What a user may ask of a simplification: every rewrite, what went, and why a rule did not fire."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.model.files.text import from_text
from onnxsmith.report.parts.answer import Answer
from onnxsmith.report.parts.operator_changes import OperatorChanges
from onnxsmith.report.parts.rewrites import Rewrites
from onnxsmith.settings import Verify

TEXT = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,4] y, float[N,4] z) {
    a = Identity(x)
    s = Sigmoid(a)
    z = Mul(a, s)
    t = Tanh(z)
    y = Abs(t)
}
"""


def answer(question: str, **options: object) -> Answer:
    result = onnxsmith.simplify(from_text(TEXT), why=[question], verify=Verify(runtime="reference"), **options)  # type: ignore[arg-type]
    return result.report.part(Answer)


def test_a_rule_says_why_it_did_not_fire() -> None:
    assert answer("fuse/swish@z") == Answer("fuse/swish", "z", False, "opset 17 has no Swish, which came with 24")
    assert answer("fuse/gelu@z").reason.startswith("the rule's pattern does not match: Mul reads from Sigmoid")
    assert answer("fuse/gelu@t").reason == "the rule starts at Mul, Div; this node is Tanh"
    assert answer("fuse/gelu@a").reason == "the node is not in the simplified model: algebra/identity removed it"
    assert answer("algebra/identity@a") == Answer("algebra/identity", "a", True, "rewrite 0: Identity → ")
    assert "left it out" in answer("algebra/identity@a", skip=["algebra/identity"]).reason


@pytest.mark.parametrize(
    ("question", "id_"), [("fuse/gelu@nothing", "node"), ("no/rule@z", "rule"), ("fuse/gelu", "node")]
)
def test_questions_that_name_nothing_are_refused(question: str, id_: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        answer(question)
    assert caught.value.problem.id == f"simplify/unknown-{id_}"


def test_every_rewrite_and_what_went() -> None:
    result = onnxsmith.simplify(from_text(TEXT), explain=True, diff=True, verify=Verify(runtime="reference"))
    rewrites, changes = result.report.part(Rewrites), result.report.part(OperatorChanges)
    assert ("algebra/identity", ("Identity",), ()) in [(e.rule, e.gone, e.made) for e in rewrites.fired]
    assert [e.rule for e in rewrites.refused] == ["fuse/swish"]
    assert changes.by_rule["algebra/identity"] == {"Identity": -1}
    assert (changes.before["Identity"], changes.after.get("Identity", 0)) == (1, 0)
    assert list(rewrites.blocks())
    assert list(changes.blocks())


def test_a_newer_opset_lets_newer_operators_in() -> None:
    result = onnxsmith.simplify(from_text(TEXT.replace("z, ", "z, ")), opset=24, verify=Verify(runtime="reference"))
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Swish", "Tanh", "Abs"]
    assert result.model.opset_imports[""] == 24
    assert "converted from opset 17 to 24" in str(result.report.parts)


def test_a_target_gives_its_newest_opset() -> None:
    result = onnxsmith.simplify(from_text(TEXT), target="reference", verify=Verify(runtime="reference"))
    assert result.model is not None
    assert result.model.opset_imports[""] > 17


@pytest.mark.parametrize(("exactness", "left"), [("bitwise", 2), ("value", 1), ("reassociates", 1)])
def test_exactness_chooses_what_may_fire(exactness: str, left: int) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) <float zero = {0}> { a = Add(x, zero)\n y = Abs(a) }"""
    result = onnxsmith.simplify(from_text(text), exactness=exactness, verify=Verify(runtime="reference"))
    assert result.model is not None
    assert len(result.model.graph) == left


def test_an_unknown_exactness_is_refused() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(from_text(TEXT), exactness="roughly")
    assert caught.value.problem.id == "simplify/unknown-exactness"


def test_functions_are_inlined_when_asked() -> None:
    text = """<ir_version: 10, opset_import: ["": 20, "mine": 1]>
        g (float[N] x) => (float[N] y) { a = mine.twice(x)\n y = Abs(a) }
        <domain: "mine", opset_import: ["": 20]> twice (v) => (w) { i = Identity(v)\n w = Add(i, v) }"""
    kept = onnxsmith.simplify(from_text(text), verify=Verify(runtime="reference")).model
    inlined = onnxsmith.simplify(from_text(text), inline_functions=True, verify=Verify(runtime="reference")).model
    assert kept is not None
    assert inlined is not None
    assert [node.op_type for node in kept.graph] == ["twice", "Abs"]
    assert [node.op_type for node in inlined.graph] == ["Add", "Abs"]
    assert not inlined.functions
