"""An edit compares the part that it changed. Equal parts pass without the whole model, wrong ones are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.load import message
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery import changed_region
from tests.editor.models import saved

CHAIN = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[n,4] y, float[n,4] z)
  <float[4,4] w = {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2}, float[4] b = {1,2,3,4}>
{
  [first] a = Relu(x)
  [same] i = Identity(a)
  [product] m = MatMul(i, w)
  [sum] s = Add(m, b)
  [soft] t = Softmax<axis = 1>(s)
  [gate] y = Mul(t, s)
  [other] z = Neg(a)
}"""
BRANCH = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x, bool c) => (float[n,4] y) <float[4] b = {1,2,3,4}> {
  [first] a = Relu(x)
  [sum] s = Add(a, b)
  y = If(c) <
    then_branch = one () => (float[n,4] o) { o = Mul(s, s) },
    else_branch = two () => (float[n,4] p) { p = Neg(s) }
  >
}"""
SIZES = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[k] y) <int64[1] all = {-1}, int64[1] eight = {8}> {
  [flat] f = Reshape(x, all)
  [end] y = Relu(f)
}"""
LOST = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[n,4] y) <float two = {2}, float three = {3}> {
  [scale] m = Mul(x, two)
  [cut] p = Relu(m)
  [sign] y = Sign(p)
  [spare] unused = Mul(x, three)
}"""


def edited(text: str, folder: Path, change: Callable[[Any], object]) -> Verification:
    """The verification of an edit that is written."""
    with onnxsmith.edit(saved(text, folder)) as m:
        change(m)
    assert m.result is not None
    return next(part for part in m.result.report.parts if isinstance(part, Verification))


def is_local(part: Verification) -> bool:
    return any("differ, " in note or "same weights in both" in note for note in part.notes)


def test_a_removed_identity_is_compared_where_the_graph_changed(tmp_path: Path) -> None:
    part = edited(CHAIN, tmp_path, lambda m: m.remove("same"))
    assert part.equal
    assert is_local(part)
    assert [(one.name, one.exact, bool(one.compared)) for one in part.outputs] == [
        ("m", True, True), ("y", True, False), ("z", True, False),
    ]  # fmt: skip
    assert part.notes[0].startswith("compared where the graphs differ, 2 nodes and 1, at m: bit-identical")
    assert part.power is not None
    assert not part.power.shortcoming()
    assert len((part.sizes or {})["n"]) > 2
    assert not part.untried


def test_a_renamed_tensor_needs_no_comparison(tmp_path: Path) -> None:
    part = edited(CHAIN, tmp_path, lambda m: m.rename(tensor="s", to="sum_of_both"))
    assert part.equal
    assert part.runs
    assert "the same operators from the same weights" in part.notes[0]
    assert [(one.name, one.compared) for one in part.outputs] == [("y", 0), ("z", 0)]


@pytest.mark.parametrize("text", [CHAIN, CHAIN.replace("float[n,4] x", "float[?,4] x"), BRANCH])
def test_renamed_inputs_are_the_same_computation(tmp_path: Path, text: str) -> None:
    def change(m: Any) -> None:
        m.rename(tensor="x", to="image")
        m.rename(tensor="a", to="x")
        m.insert("Identity", after="x", same=True)

    part = edited(text, tmp_path, change)
    assert part.equal
    assert is_local(part)
    assert part.runs
    assert part.outputs[0].exact
    assert {name.partition(".")[0] for name in part.sizes or {}} <= {"n", "x"}


def test_inputs_that_changed_places_are_found(tmp_path: Path) -> None:
    two = CHAIN.replace("float[n,4] x)", "float[n,4] x, float[n,4] u)").replace("Neg(a)", "Sub(a, u)")

    def change(m: Any) -> None:
        m.rename(tensor="x", to="v")
        m.rename(tensor="u", to="x")
        m.rename(tensor="v", to="u")
        reads = {use.node.name: use for value in m.model.graph.inputs for use in value.uses()}
        first, other = m.model.graph.inputs
        reads["first"].node.replace_input_with(0, other)
        reads["other"].node.replace_input_with(1, first)

    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        edited(two, tmp_path, change)
    assert caught.value.problem.id == "verify/different"


def test_an_insertion_at_an_output(tmp_path: Path) -> None:
    part = edited(CHAIN, tmp_path, lambda m: m.insert("Identity", after="z", same=True))
    assert part.equal
    assert is_local(part)
    assert {one.name for one in part.outputs} == {"y", "z"}


def test_kept_outputs_of_a_change_on_purpose_are_the_same_computation(tmp_path: Path) -> None:
    part = edited(CHAIN, tmp_path, lambda m: m.insert("Relu", after="t"))
    assert part.equal
    assert is_local(part)
    assert "z" in {one.name for one in part.outputs}
    assert "y" not in {one.name for one in part.outputs}


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.insert("Neg", after="i", same=True),
        lambda m: m.insert("Neg", after="z", same=True),
        lambda m: m.set("soft", {"axis": 0}, same=True),
        lambda m: m.wire("sum", 1, [1.0, 2.0, 3.0, 4.001], same=True),
        lambda m: m.wire("gate", 1, "m", same=True),
        lambda m: m.remove("soft", same=True),
        lambda m: m.replace("Add(x, b)", "Sub(x, b)"),
        lambda m: m.insert("Add", after="s", operands=[1e-3], same=True),
    ],
)
def test_wrong_edits_are_found(tmp_path: Path, change: Callable[[Any], object]) -> None:
    path = saved(CHAIN, tmp_path)
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        change(m)
    assert caught.value.problem.id == "verify/different", caught.value.problem
    assert path.read_bytes() == before


def test_a_weight_changed_by_hand_is_found(tmp_path: Path) -> None:
    def change(m: Any) -> None:
        m.rename(tensor="s", to="sum_of_both")
        m.model.graph.initializers["b"].const_value = ir.tensor(np.array([1, 2, 3, 5], np.float32), name="b")

    with pytest.raises(onnxsmith.OnnxsmithError, match="differs"):
        edited(CHAIN, tmp_path, change)


def test_outputs_in_another_order_are_found(tmp_path: Path) -> None:
    def change(m: Any) -> None:
        m.rename(tensor="s", to="sum_of_both")
        m.model.graph.outputs.reverse()

    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        edited(CHAIN, tmp_path, change)
    assert caught.value.problem.id == "verify/different"


def test_a_size_at_which_only_the_edited_model_fails_is_found(tmp_path: Path) -> None:
    path = saved(SIZES, tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.wire("flat", 1, "eight", same=True)
    assert caught.value.problem.id in ("verify/different", "edit/does-not-run", "model/shape-conflict")


def test_a_difference_that_vanishes_behind_is_left_to_the_whole_models(tmp_path: Path) -> None:
    part = edited(LOST, tmp_path, lambda m: m.wire("scale", 1, "three", same=True))
    assert part.equal
    assert not is_local(part)
    assert [one.name for one in part.outputs] == ["y"]


def test_tensors_that_branches_capture(tmp_path: Path) -> None:
    part = edited(BRANCH, tmp_path, lambda m: m.insert("Identity", after="a", same=True))
    assert part.equal
    assert is_local(part)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(tmp_path / "model.onnx") as m:
        m.insert("Neg", after="s", same=True)
    assert caught.value.problem.id == "verify/different"


def region(before: str, after: str, **known: str) -> changed_region.Region | None:
    ours, theirs = (message(from_text(text)) for text in (before, after))
    outputs = {one.name: one.name for one in ours.graph.output}
    inputs = {one.name: one.name for one in ours.graph.input}
    names = {name: name for node in ours.graph.node for name in node.output}
    return changed_region.find(ours, theirs, outputs, inputs, {**names, **known})


def test_equal_graphs_have_no_pairs_whatever_their_inner_names() -> None:
    found = region(CHAIN, CHAIN.replace(" s = Add", " q = Add").replace("(s)", "(q)").replace("(t, s)", "(t, q)"))
    assert found is not None
    assert not found.pairs


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("Relu(x)", "Abs(x)", ["a"]),
        ("axis = 1", "axis = 0", ["t"]),
        ("b = {1,2,3,4}", "b = {1,2,3,5}", ["s"]),
        ("Mul(t, s)", "Mul(s, t)", ["y"]),
        ("MatMul(i, w)", "MatMul(a, w)", ["m"]),
        ('"": 21', '"": 20', ["a", "i", "m", "s", "t", "y", "z"]),
    ],
)
def test_each_difference_is_a_pair(old: str, new: str, pairs: list[str]) -> None:
    found = region(CHAIN, CHAIN.replace(old, new))
    assert found is not None
    assert sorted(found.pairs) == pairs


def test_what_cannot_be_compared_alone() -> None:
    assert region(BRANCH, BRANCH.replace("Mul(s, s)", "Add(s, s)")) is None  # the branch needs its condition
    assert region(CHAIN, CHAIN.replace("Relu(x)", "RandomUniformLike(x)")) is None
    long = "a1 = Neg(x)\n" + "\n".join(f"a{at} = Neg(a{at - 1})" for at in range(2, 80)) + "\ny = Neg(a79)"
    many = f'<ir_version: 10, opset_import: ["": 21]> g (float[4] x) => (float[4] y) {{ {long} }}'
    assert region(many, many.replace("Neg", "Abs")) is None


def test_a_captured_tensor_with_another_value_changes_the_node_of_the_branch() -> None:
    """Equal text of a branch is no equal computation."""
    found = region(BRANCH, BRANCH.replace("Add(a, b)", "Sub(a, b)"))
    assert found is not None
    assert list(found.pairs) == ["s"]
    assert region(BRANCH, BRANCH.replace("Add(a, b)", "Sub(a, b)"), s="") is None  # no counterpart: y itself differs


def test_the_parts_compute_what_the_graphs_do() -> None:
    found = region(CHAIN, CHAIN.replace("MatMul(i, w)", "MatMul(a, w)"))
    assert found is not None
    assert found.given == ("a",)
    assert found.nodes == (2, 1)
    like = {"a": np.ones((2, 4), np.float32), "m": np.ones((2, 4), np.float32)}
    before, after = found.parts(like)
    (name,) = found.renamed(like)
    feeds = {name: np.arange(8, dtype=np.float32).reshape(2, 4)}
    ours, theirs = (onnxsmith.run(model, feeds).outputs["m"] for model in (before, after))
    assert np.array_equal(ours, theirs)
    assert np.asarray(ours).shape == (2, 4)


FAR = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[n,2] y) <int64[2] two = {-1,2}, int64[2] four = {-1,4}> {
  [first] a = Relu(x)
  [narrow] r = Reshape(a, two)
  [end] y = Neg(r)
}"""


def test_shapes_are_inferred_around_the_change_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.editor import edited_model

    def whole(model: ir.Model) -> None:
        raise AssertionError("the whole graph was inferred")

    monkeypatch.setattr(edited_model, "infer", whole)
    with onnxsmith.edit(saved(FAR, tmp_path)) as m:
        m.insert("Abs", after="a", same=True)
    assert m.result is not None
    assert m.result.ok


def test_a_size_that_changes_is_followed(tmp_path: Path) -> None:
    """A wrong shape in front of the changed node would stay declared if it were not."""
    with onnxsmith.edit(saved(FAR, tmp_path)) as m:
        m.wire("narrow", 1, "four")
    assert m.result is not None
    assert [str(one.shape) for one in m.model.graph.outputs] == ["[n,4]"]


def test_weights_in_data_files_are_compared_by_their_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,64] x) => (float[n,64] y) <float[1] w = {0}, float[1] v = {0}> {
  [first] a = MatMul(x, w)
  [middle] b = MatMul(a, v)
  [last] y = Relu(b)
}"""
    model = from_text(text)
    for name, value in model.graph.initializers.items():
        value.const_value = ir.tensor(rng.standard_normal((64, 64)).astype(np.float32), name=name)
        value.shape = ir.Shape([64, 64])
    path = tmp_path / "model.onnx"
    ir.save(model, path, external_data="model.data")

    def result(change: Callable[[Any], object]) -> Verification:
        with onnxsmith.edit(path, tmp_path / "edited.onnx") as m:
            change(m)
        assert m.result is not None
        return next(part for part in m.result.report.parts if isinstance(part, Verification))

    part = result(lambda m: m.insert("Identity", after="a", same=True))
    assert part.equal
    assert is_local(part)
    part = result(lambda m: m.replace("Relu(x)", "Max(x, 0)"))
    assert part.equal
    assert is_local(part)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        result(lambda m: m.wire("middle", 1, "w", same=True))
    assert caught.value.problem.id == "verify/different"
