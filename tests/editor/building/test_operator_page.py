"""`op`: changes by opset are computed from the schemas, kernels are asked of onnxruntime, the example runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.item_views import OperatorView
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.explain import Op
from onnxsmith.cli.render.terminal import console, show
from onnxsmith.editor.building import operator_page as module
from onnxsmith.editor.building.build import build
from onnxsmith.editor.building.operator_calls import CALLS
from onnxsmith.editor.building.operator_example import example
from onnxsmith.editor.building.operator_page import operator_page
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.reading import operator_text
from onnxsmith.graph.reading.operator_history import changes, history
from onnxsmith.graph.structure import schema
from onnxsmith.runtimes.onnxruntime import OnnxRuntime


def at(op: str, version: int, domain: str = "") -> tuple[str, ...]:
    return {one.version: one.changes for one in history(op, domain)}[version]


def test_changes_by_opset() -> None:
    assert "attribute axes removed" in at("ReduceMean", 18)
    assert "input axes added (optional)" in at("ReduceMean", 18)
    assert "input roi is optional (was required)" in at("Resize", 13)
    assert any(one.startswith("input X also takes bfloat16") for one in at("Resize", 13))
    assert at("Resize", 10) == ("added",)
    assert at("Resize", 19)[0] == "operands, attributes and types stay"
    assert "deprecated" in at("Upsample", 10)
    assert any(one.startswith("attribute axis defaults to -1") for one in at("Softmax", 13))


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_every_version_of_every_operator_has_a_line(domain: str) -> None:
    for op in schema.every_name(domain):
        lines = list(history(op, domain))
        assert tuple(one.version for one in lines) == schema.versions(op, domain)
        assert all(one.changes for one in lines)


def test_equal_schemas_have_no_change() -> None:
    one = schema.find("Conv", "", 11)
    assert one is not None
    assert not list(changes(one, one))


def test_the_page_of_an_operator() -> None:
    report = Op("Resize").run()
    part = report.part(OperatorView)
    assert report.verdict is Verdict.DONE
    assert report.headline.startswith("Resize: since opset 10, changed at 11, 13, 18")
    assert [(one.name, one.kind) for one in part.inputs] == [
        ("X", "required"),
        ("roi", "optional"),
        ("scales", "optional"),
        ("sizes", "optional"),
    ]
    assert "float" in part.inputs[0].types
    assert {one.name: one.default for one in part.attributes}["mode"] == "'nearest'"
    assert part.kernels
    assert part.kernels[0].first == 10
    assert "float" in part.kernels[-1].types["T1"]
    assert "bfloat16" not in part.kernels[-1].types["T1"]
    assert Report.from_json(report.to_json()) == report


def test_the_form_of_an_older_opset() -> None:
    part = operator_page("ReduceMean", opset=17).part(OperatorView)
    assert part.version == 13
    assert [one.name for one in part.inputs] == ["data"]
    assert "axes" in [one.name for one in part.attributes]


@pytest.mark.parametrize(
    "op", ["Conv", "Relu", "TopK", "Cast", "BatchNormalization", "MatMul", "Concat", "Gather", "Resize"]
)
def test_the_example_runs(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = schema.find(op, "", 21)
    assert form is not None
    program = example(op, "", form, 21)
    assert f"g.{op}(" in program
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert (tmp_path / f"{op.lower()}.onnx").is_file()


@pytest.mark.parametrize("full", sorted(CALLS))
def test_a_call_runs_in_an_example_of_one_line(full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain, _, op = full.rpartition("::")
    version = min(schema.last_alive(op, domain) or 0, 5 if domain else 21)
    form = schema.find(op, domain, version)
    assert form is not None
    program = example(op, domain, form, version)
    assert CALLS[full] in program.splitlines()[-1]
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert (tmp_path / f"{op.lower()}.onnx").is_file()


@pytest.mark.parametrize("op", ["ArrayFeatureExtractor", "Binarizer"])
def test_operators_of_the_other_domain_have_an_example(op: str) -> None:
    part = operator_page(f"ai.onnx.ml::{op}").part(OperatorView)
    assert f'g.node("ai.onnx.ml::{op}"' in part.example


def test_a_deprecated_form_that_a_runtime_knows_has_an_example_as_text(tmp_path: Path) -> None:
    report = operator_page("GroupNormalization", opset=18)
    text = report.part(OperatorView).example
    assert len(text.splitlines()) == 1
    assert '"" : 18' in text
    model = from_text(text)
    assert model.graph[0].op_type == "GroupNormalization"
    groups = model.graph[0].attributes.get_int("num_groups")
    assert [list(value.shape or ()) for value in model.graph.inputs[1:]] == [[groups], [groups]]
    assert any("deprecates" in note and "the form of opset 21 is not deprecated" in note for note in report.notes)


def test_a_deprecated_operator_has_an_example_of_its_last_opset() -> None:
    report = operator_page("Upsample")
    assert "opset=9" in report.part(OperatorView).example
    assert any("the example uses opset 9" in note for note in report.notes)


def test_an_operator_of_maps_has_no_example_and_says_so() -> None:
    report = operator_page("ai.onnx.ml::DictVectorizer")
    assert not report.part(OperatorView).example
    assert any("no example" in note for note in report.notes)


def test_the_text_says_what_the_operator_does() -> None:
    part = operator_page("ai.onnx.ml::LabelEncoder").part(OperatorView)
    assert part.summary.startswith("Maps each element in the input tensor to another value. The mapping")
    assert "<br>" not in part.doc
    assert len(part.summary) < len(part.doc)
    part = operator_page("Relu").part(OperatorView)
    assert "(Tensor<T>)" in part.summary
    assert part.summary == " ".join(part.doc.split())


def test_a_terminal_shows_the_whole_text_with_verbose() -> None:
    report = operator_page("TopK")
    shown = []
    for whole in (False, True):
        made = console(100)
        with made.capture() as printed:
            show(report, made, whole=whole)
        shown.append(printed.get())
    assert "Retrieve the top-K" in shown[0]
    assert "used as a tiebreaker" not in shown[0]
    assert "the whole text: -v" in shown[0]
    assert "a tiebreaker. That is, the element with the lower index" in shown[1]


def test_other_shapes_and_meanings_of_operands_are_changes() -> None:
    found = at("GroupNormalization", 21)
    assert found[0] == "attribute stash_type added (int)"
    for name in ("scale", "bias"):
        said = f'the description of input {name} is "{name.title()} tensor of shape (C)." (was'
        assert any(one.startswith(said) and "(num_groups)" in one for one in found)
    assert any("attribute axis" in one and "Negative value" in one for one in at("Softmax", 11))
    assert not any("description" in one for one in at("Conv", 22))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("Input tensor.", "input `tensor`", ""),
        ("Slices alone the axis of the whole input tensor.", "Slices along the axis of the whole input tensor.", ""),
        ("One number. More text.", "One number.More text.", ""),
        ("One number.", "One number. It may be 0.", 'has the new sentence "It may be 0."'),
        ("One number. It may be 0.", "One number.", 'has no longer the sentence "It may be 0."'),
        ("Shape (C).", "Shape (num_groups).", 'is "Shape (num_groups)." (was "Shape (C).")'),
    ],
)
def test_differences_of_descriptions(before: str, now: str, said: str) -> None:
    assert operator_text.change(before, now) == said


def test_an_operator_without_a_kernel_of_its_own_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnnxRuntime, "kernels", lambda *_: [])
    report = operator_page("ai.onnx.ml::ArrayFeatureExtractor")
    assert report.part(OperatorView).kernels == ()
    assert any("no CPU kernel of its own" in note for note in report.notes)


def test_a_missing_onnxruntime_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        OnnxRuntime, "missing", lambda _: Problem("runtime/not-installed", "onnxruntime is not installed")
    )
    monkeypatch.setattr(module, "example", lambda *_: "")
    report = operator_page("Relu")
    assert report.part(OperatorView).kernels is None
    assert any("kernels are not shown" in note for note in report.notes)


@pytest.mark.parametrize(
    ("asked", "near"),
    [("resize", "Resize"), ("Convv", "Conv"), ("TreeEnsemble", "ai.onnx.ml::TreeEnsemble"), ("qqq", "write it as")],
)
def test_an_unknown_operator_names_the_nearest(asked: str, near: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        operator_page(asked)
    assert caught.value.problem.id == "op/unknown-operator"
    assert near in caught.value.problem.fix


@pytest.mark.parametrize("asked", ["nothing::Relu", "com.microsoft::Gelu", "", "::"])
def test_an_unknown_domain(asked: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        operator_page(asked)
    assert caught.value.problem.id == "op/unknown-operator"


@pytest.mark.parametrize("opset", [3, 0, -1, 1000])
def test_an_opset_without_the_operator(opset: int) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        operator_page("Gelu", opset=opset)
    assert caught.value.problem.id == "op/unknown-opset"


def convolved_scalar() -> None:
    with build(opset=21) as g:
        x, scale, zero = g.input("x", "uint8", []), g.input("s", "float32", []), g.input("z", "uint8", [])
        g.QLinearConv(x, scale, zero, x, scale, zero, scale, zero)


def test_a_quantised_convolution_of_a_scalar_is_refused_at_its_line() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        convolved_scalar()
    assert "three axes or more" in str(caught.value)
