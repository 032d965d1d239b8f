"""A report has one verdict, and says how its measures differ and what helps."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import onnxsmith
from onnxsmith.base.report.base import Text
from onnxsmith.base.report.parts.layers import _ORDER, Layers
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.verification.verification_verdict import problems
from tests.verification.by_layer.test_judging import CHAIN, HIDDEN, chain, layers_of


def said(part: Layers | Verification) -> str:
    return "\n".join(str(block) for block in part.blocks())


def test_if_the_layers_decide_the_outputs_have_no_verdict_of_their_own() -> None:
    _, result = layers_of(chain(HIDDEN), chain(HIDDEN, t=200.0))
    report = result.report
    assert report.verdict is Verdict.DIFFERENT
    assert [one.id for one in report.problems] == ["compare/first-error"]
    assert "the outputs agree within rounding, but the error of this layer decides" in report.problems[0].why
    assert "but only inside: the outputs agree; first error: c" in report.headline
    assert "CANNOT TELL" not in report.headline + said(report.part(Verification))
    assert "has an error, so the models are different" in said(report.part(Verification))


def test_if_the_outputs_differ_nothing_is_said_of_outputs_that_agree() -> None:
    _, result = layers_of(chain(), chain(t=2.4))
    assert [one.id for one in result.report.problems] == ["verify/different", "compare/first-error"]
    assert "agree" not in result.report.headline + said(result.report.part(Verification))


def test_the_effect_on_the_outputs_has_the_measure_of_the_tables() -> None:
    found, result = layers_of(chain(CHAIN), chain(CHAIN, s=0.5 * (1 + 1e-4), t=2.4))
    texts = [block.text for block in found.blocks() if isinstance(block, Text)]
    outputs = [layer.inherited for layer in found.layers if layer.paired_by == "port"]
    assert found.left is not None
    assert found.left[0] == max(outputs)
    assert any(f"is off by {found.left[1]:.2g} of its scale instead of {max(outputs):.2g}" in text for text in texts)
    assert any("its worst element is off by" in text for text in texts)
    assert "its worst element is off by" in result.report.problems[-1].why


WEAK = Verification(
    "a", "b.onnx on onnxruntime", True, False, ("one",), unsure=("no input could decide about output 'y'",)
)


def test_another_runtime_is_not_offered_where_it_changes_nothing() -> None:
    (found,) = problems(WEAK)
    assert "--runtime reference" in found.fix
    blind = "a change of 5% in 2 of 7 weights would not have been seen"
    for weak in (replace(WEAK, candidate="b.onnx on reference"), replace(WEAK, unsure=(blind,))):
        (found,) = problems(weak)
        assert "--runtime" not in found.fix
        assert "--input inputs.npz" in found.fix


def test_a_weak_comparison_offers_the_layers_once() -> None:
    for per_layer in (False, True):
        result = onnxsmith.compare(chain(HIDDEN), chain(HIDDEN, t=2.0 * (1 + 3e-5)), per_layer=per_layer)
        weak = [one for one in result.report.problems if one.id == "verify/cannot-tell"]
        assert all(("--per-layer" in one.fix) is not per_layer for one in weak), result.report
        assert weak or per_layer


def test_the_guide_explains_each_verdict_of_a_layer() -> None:
    text = (Path(__file__).parents[3] / "docs" / "comparing.md").read_text(encoding="utf-8")
    assert [word for word in _ORDER if f"| `{word}` " not in text] == []


def test_the_usual_causes_of_a_difference_list_weights_and_attributes() -> None:
    page = files("onnxsmith.viewer").joinpath("pages/verify/different.md").read_text(encoding="utf-8")
    usual = page.partition("## Why")[2].partition("## What helps")[0]
    assert "- A weight differs" in usual
    assert "- An attribute differs" in usual
