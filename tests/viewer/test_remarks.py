"""What a report says that no node can show: of the model as a whole, of names without a node, of nothing found."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.model_summary import Costs
from onnxsmith.base.report.parts.quantisation import LayerDamage, Precision, Quantisation
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck, TargetChecks
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD, chain
from tests.viewer.test_overlays import TEXT, report
from tests.viewer.test_view import scene_in

NOTHING_KEPT = Precision("float16", 3, 3, (), {}, "", "", "", 1, 0, 1, 0, narrow=3)


def lines(part: Part) -> list[str]:
    """The lines above the picture, which are in the headline, too."""
    result = view(from_text(TEXT), reports=[report(part)])
    found: list[str] = scene_in(result.page)["warnings"]
    assert all(line in result.report.headline for line in found)
    return found


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            TargetCheck("o", "Other", "1", True, Stage.REFUSED, "numbers only", whole=True),
            "refuses the whole model: numbers",
        ),
        (TargetCheck("o", "Other", "1", True, Stage.REFUSED, "no reason"), "refuses the whole model: no reason"),
        (TargetCheck("o", "Other", "1", True, Stage.NOT_TRIED, "not installed"), "was not tried: not installed"),
        (
            TargetCheck("o", "Other", "1", True, Stage.RAN, changed="with opset 18", as_it_is="too new"),
            "refuses the unchanged file: too new; ran with opset 18",
        ),
        (TargetCheck("o", "Other", "1", True, Stage.RAN, symbols="no symbols"), "accepts fixed sizes only"),
    ],
)
def test_a_target_that_says_no_to_the_whole_model(check: TargetCheck, said: str) -> None:
    (line,) = lines(TargetChecks((check,)))
    assert line.startswith(f"the report of made: Other {said}")


def test_a_target_that_names_the_node_needs_no_line() -> None:
    node = NodeCheck("root", "Sqrt", Stage.REFUSED, "no kernel")
    assert lines(TargetChecks((TargetCheck("o", "Other", "1", True, Stage.REFUSED, "", nodes=(node,)),))) == []


def test_nothing_was_kept() -> None:
    (line,) = lines(NOTHING_KEPT)
    assert "no node has to stay in float32: 3 of 3 nodes became float16" in line


def test_nothing_was_rewritten() -> None:
    assert "found nothing to rewrite" in lines(Simplification(3, 3, 1, 1, (), (), 1))[0]


def test_a_report_that_colours_nothing_says_so() -> None:
    damage = LayerDamage("product", "MatMul", 24, None, "")
    whole = Quantisation("int8", "q", (), "mse", "lower", 0.0, 0.1, 0.2, "", 1, 1, False, True, 0, 10, 5, 1)
    assert "no layer could become int8" in lines(whole)[0]
    part = Quantisation("int8", "q", (damage,), "mse", "lower", 0.0, 0.1, 0.2, "", 1, 1, False, True, 0, 10, 5, 1)
    assert lines(part) == []


def test_names_without_a_node_are_counted_with_a_reason() -> None:
    layers = tuple(LayerDamage(name, "MatMul", 24, None, "") for name in ("product", "node_1", "node_2"))
    part = Quantisation("int8", "q", layers, "mse", "lower", 0.0, 0.1, 0.2, "", 1, 1, False, True, 0, 10, 5, 1)
    result = view(from_text(TEXT), reports=[report(part)])
    assert "2 of 3 names in Precision have no node here (quantize first simplifies a copy" in result.report.headline
    (note,) = result.report.notes
    assert "node_1, node_2" in note
    assert scene_in(result.page)["notes"] == [note]


def test_a_report_of_simplify_on_its_own_input_is_of_this_version(tmp_path: Path) -> None:
    save(
        from_text(HEAD + "g (float[3] x) => (float[3] y) { [a] t = Identity(x) [b] y = Relu(t) }"), tmp_path / "m.onnx"
    )
    entries = tuple(Entry(at, "some/rule", name) for at, name in enumerate(("a", "p", "q", "r")))
    models = onnxsmith.inspect(tmp_path / "m.onnx").models
    for known in (models, ()):
        part = Simplification(2, 1, 0, 0, entries, (), 1)
        given = Report("simplify", Verdict.DONE, (part,), models=known)
        said = view(tmp_path / "m.onnx", reports=[given]).report.headline
        assert "version" not in said
        assert "3 of 4 names in Simplification have no node here (one rewrite added these nodes" in said


def test_a_stored_tensor_is_no_stranger() -> None:
    entries = (Entry(0, "pass: x", "initializer w"), Entry(1, "pass: y", "w"), Entry(2, "some/rule", "root"))
    result = view(from_text(TEXT), reports=[report(Simplification(3, 3, 1, 1, entries, (), 1))])
    assert "2 of 3 names in Simplification have no node (inputs and stored tensors)" in result.report.headline


def test_a_module_that_holds_only_modules_is_no_stranger() -> None:
    from onnxsmith.viewer.inspection.inspect import inspect

    model = chain([f"{op}@net.{module}" for module in "ab" for op in ("Relu", "Abs", "Neg")])
    given = inspect(model, costs=True, sizes={"N": 10})
    assert "net" in {row.name for row in given.part(Costs).rows}
    assert view(model, reports=[given]).report.headline == "the model: 7 nodes"


def test_the_target_that_refuses_comes_first(tmp_path: Path) -> None:
    node = NodeCheck("root", "Sqrt", Stage.REFUSED, "no kernel")
    taken = TargetCheck("a", "Agreeing", "1", True, Stage.AGREED)
    refused = TargetCheck("o", "Other", "1", True, Stage.REFUSED, "", nodes=(node,))
    report = Report("made", Verdict.DONE, parts=(TargetChecks((taken, refused)),))
    shown = scene_in(view(from_text(TEXT), reports=[report]).page)
    assert [one["title"] for one in shown["overlays"]] == ["Other", "Agreeing"]
