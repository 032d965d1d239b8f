"""What a user may ask of a simplification: every rewrite, what went, and why a rule did not fire."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Rewrites, Simplification
from onnxsmith.base.report.parts.explanations import Answer
from onnxsmith.base.report.parts.model_changes import OperatorChanges
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text

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
    assert "excluded it" in answer("algebra/identity@a", skip=["algebra/identity"]).reason


FOLDED = """
<ir_version: 10, opset_import: ["": 20]>
g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] z)
<float two = {2}, float three = {3}, float[1] spare = {4}, float[1] other = {4}> {
    k = Mul(two, three)
    a = Mul(x, k)
    b = Mul(x, k)
    t = Tanh(a)
    u = Abs(t)
    e = Add(u, spare)
    f = Add(u, other)
    d = If (c) <then_branch = yes () => (float[N,4] p) { p = Neg(e) },
                else_branch = no () => (float[N,4] q) { q = Abs(e) }>
    y = Add(d, b)
    z = Add(f, b)
}
"""
"""A model that folding, sharing and the passes that always run change, and two nodes with a reason to stay."""


@pytest.mark.parametrize(
    ("question", "fired", "reason"),
    [
        ("fold/constant@k", True, "rewrite 0: Mul → "),
        ("fold/constant@a", False, "its input x is not a constant"),
        ("fold/constant@u", False, "its input t is not a constant: Tanh computes it"),
        ("fold/branch@d", False, "its condition c is not a constant"),
        ("fold/branch@t", False, "the step starts at If; this node is Tanh"),
        ("share/nodes@b", True, "-> b = -> a"),
        ("share/nodes@t", False, "no earlier node of its graph has the same operator, attributes and inputs"),
        ("share/initializers@t", False, "no initializer that it reads is equal to an earlier one"),
        ("share/sizes@t", False, "its result is not provably the sizes of an earlier tensor"),
        ("pass: nodes, initializers and functions that no output depends on@t", False, "always runs"),
    ],
)
def test_a_step_that_the_report_names_answers_too(question: str, fired: bool, reason: str) -> None:
    result = onnxsmith.simplify(from_text(FOLDED), why=[question], verify=False)
    found = result.report.part(Answer)
    assert (found.fired, reason in found.reason) == (fired, True), found


def test_every_name_of_a_report_can_be_asked_about() -> None:
    result = onnxsmith.simplify(from_text(FOLDED), verify=False)
    part = result.report.part(Simplification)
    names = dict.fromkeys(entry.rule for entry in (*part.fired, *part.refused))
    assert {"fold/constant", "share/nodes", "share/initializers"} < set(names)
    asked = onnxsmith.simplify(from_text(FOLDED), why=[f"{name}@t" for name in names], verify=False)
    assert len([one for one in asked.report.parts if isinstance(one, Answer)]) == len(names)


def test_a_rule_for_a_runtime_says_what_it_needs() -> None:
    assert answer("contrib/quick-gelu@z").reason.endswith("excluded it, or it runs with --contrib only")


def test_a_step_that_was_left_out_says_so() -> None:
    result = onnxsmith.simplify(from_text(FOLDED), why=["fold/constant@k"], skip=["fold/constant"], verify=False)
    assert "excluded it" in result.report.part(Answer).reason


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


def test_what_passes_removed_is_no_rewrite() -> None:
    text = TEXT.rpartition("}")[0] + " unused = Exp(x) }"
    result = onnxsmith.simplify(from_text(text), explain=True, verify=Verify(runtime="reference"))
    everything = result.report.part(Simplification).fired
    assert {e.is_rewrite for e in everything} == {True, False}
    assert result.report.part(Rewrites).fired == tuple(e for e in everything if e.is_rewrite)


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
