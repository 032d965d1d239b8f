"""`check`: what is said of targets that take a model, refuse it, compute something else, or are not there."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck, TargetChecks, refusals
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.random_cut import random_cut
from onnxsmith.deployment.checking.refused_nodes import without
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Refusal
from onnxsmith.verification import random_draws
from onnxsmith.verification.inputs.generate import Feed
from tests.deployment.checking.fakes import Fake

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
DET = HEAD + "g (float[n,4,4] x) => (float[n] y) { a = Neg(x) [det] d = Det(a) y = Relu(d) }"


def write(folder: Path, text: str, name: str = "m.onnx") -> Path:
    onnxsmith.save(from_text(text), folder / name)
    return folder / name


def checked(model: Any, *targets: str, **more: Any) -> tuple[Report, list[TargetCheck]]:
    report = onnxsmith.check(model, targets, **more).report
    assert Report.from_json(report.to_json()) == report
    return report, list(report.part(TargetChecks).checks)


def test_targets_that_agree(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }")
    report, checks = checked(path, "onnxruntime", "openvino")
    assert report.verdict is Verdict.DONE, report.to_json()
    assert [one.stage for one in checks] == [Stage.AGREED] * 2
    assert all(one.counts == {"agreed": 2} and one.version for one in checks)


def test_a_refused_node_is_named_and_the_rest_was_asked(tmp_path: Path) -> None:
    report, checks = checked(write(tmp_path, DET), "openvino")
    assert report.verdict is Verdict.DIFFERENT
    assert "openvino refused 1 node" in report.headline
    assert [(one.node, one.op) for one in checks[0].nodes] == [("det", "Det")]
    assert checks[0].counts == {"refused": 1, "built": 2}


def test_a_dtype_that_the_interface_has(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "g (double[n,4] x) => (double[n,4] y) { a = Neg(x) y = Relu(a) }")
    _, checks = checked(path, "openvino")
    assert checks[0].whole
    assert not checks[0].nodes


def test_static_shapes_are_tried_second(tmp_path: Path, only: Any) -> None:
    def ask(model: ir.Model, feeds: Feeds | None) -> Answer:
        for node in model.graph:
            if node.op_type == "Neg" and not (node.outputs[0].shape or node.inputs[0].shape).is_static():
                return Answer(Stage.PARSED, Refusal("Neg needs fixed sizes", Stage.PARSED))
        return Answer(Stage.BUILT)

    only(Fake(ask))
    report, (one,) = checked(write(tmp_path, DET), "fake", verify=onnxsmith.Verify(sizes={"n": 3}))
    assert one.stage is Stage.BUILT
    assert one.shapes == "n=3"
    assert "fake refused the unchanged file, built with its sizes fixed (n=3)" in report.headline
    assert [(node.node, node.stage) for node in one.nodes] == [("-> a", Stage.REFUSED)]
    assert "with dynamic shapes: Neg needs fixed sizes" in one.nodes[0].why


@pytest.fixture
def wrong_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Gives a model that one runtime computes wrong: it runs Elu where the model has Relu."""
    from onnxsmith.deployment.checking import target_query

    path = write(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }")
    wrong = write(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Elu(a) }", "wrong.onnx")
    right = target_query.compare

    def on(runtime: str) -> Path:
        def compare(*sides: str, **settings: Any) -> Any:
            return right(*(one.replace(f"{path}@{runtime}", f"{wrong}@{runtime}") for one in sides), **settings)

        monkeypatch.setattr(target_query, "compare", compare)
        return path

    return on


def test_other_numbers_are_found(only: Any, wrong_on: Callable[[str], Path]) -> None:
    """A target whose runtime computes something else does not pass, and is named as the one that is alone."""
    path = wrong_on("onnxruntime")
    only(Fake(lambda _m, feeds: Answer(Stage.RAN if feeds else Stage.BUILT), runtime="onnxruntime"))
    report, (one,) = checked(path, "fake")
    assert one.stage is Stage.RAN
    assert one.why.startswith(
        "only onnxruntime differs: openvino and tract agree with each other; the outputs differ from"
    )
    assert re.search(r"output y: .*, off by 0\.\d+ at a scale of 0\.\d+", one.why)
    assert report.verdict is not Verdict.DONE
    assert "fake ran, but returned other numbers" in report.headline
    assert "@fake --per-layer`" in report.problems[0].fix
    assert [node.op for node in one.nodes] == ["Elu"]


def test_a_reference_that_is_alone_is_named(only: Any, wrong_on: Callable[[str], Path]) -> None:
    path = wrong_on("openvino")
    only(Fake(lambda _m, feeds: Answer(Stage.RAN if feeds else Stage.BUILT), runtime="onnxruntime"))
    report, (one,) = checked(path, "fake")
    assert one.stage is Stage.AGREED
    assert any(note.startswith("only openvino differs: onnxruntime and tract agree; ") for note in one.notes)
    assert report.verdict is Verdict.DONE


def test_equal_lines_are_one_line() -> None:
    nodes = tuple(NodeCheck(f"n{at}", "Neg", Stage.REFUSED, "no kernel") for at in range(5))
    other = NodeCheck("z", "Abs", Stage.REFUSED, "no kernel")
    check = TargetCheck("fake", "Fake", "1", judge=True, stage=Stage.REFUSED, nodes=(nodes[0], other, *nodes[1:]))
    table = next(one for one in list(TargetChecks((check,)).blocks())[1:] if isinstance(one, Table))
    assert [row[0] for row in table.rows] == ["n0, n1, n2 and 2 more", "z"]


def test_a_refusal_names_the_refused_nodes_only() -> None:
    nodes = (
        NodeCheck("bits", "BitwiseAnd", Stage.NOT_TRIED, "the table does not say"),
        NodeCheck("shrink", "Resize", Stage.REFUSED, "mode is cubic"),
        NodeCheck("-> y", "mine::Op", Stage.REFUSED, "it is not in the table"),
        NodeCheck("grow", "Resize", Stage.REFUSED, "mode is cubic"),
    )
    counts = {"refused": 3, "not tried": 1}
    check = TargetCheck("fake", "Fake", "1", judge=True, stage=Stage.REFUSED, nodes=nodes, counts=counts)
    (said,) = refusals((check,), "a b.onnx", ["x"])
    assert (said.what, said.where) == ("fake refused 3 nodes, 1 node undecided", "shrink, -> y, grow")
    assert said.remedies[0].text == "onnxsmith op Resize; onnxsmith inspect 'a b.onnx' y"
    assert "write Resize, mine::Op as operators that the target accepts" in said.fix


def test_undecided_nodes_are_counted_and_the_table_is_named() -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 17]> g (float[2,2] x) => (float y) { y = Det(x) }')
    report = onnxsmith.check(model, targets=["tensorrt-11"]).report
    assert "tensorrt-11 leaves 1 node undecided" in report.headline
    (part,) = (one for one in report.parts if isinstance(one, TargetChecks))
    (check,) = part.checks
    assert "TensorRT 10.15 does not support it; whether version 11 does is not in the table" in check.why
    notes = " ".join(check.notes)
    assert "the table (11.4, by the operators of 10.15) was read on 2026-11-24 from https://github.com/onnx" in notes
    assert "the table does not cover these points: Which operators version 11 adds" in notes
    assert "`trtexec --onnx=model.onnx`" in notes


def test_a_target_that_exceeds_its_limits_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_model: ir.Model, _feeds: Feeds | None) -> Answer:
        raise problem("runtime/timeout", "it took longer than 1 s", fix="allow more")

    known = rooms.members

    def members(room: str, base: Any) -> Any:
        found = known(room, base)
        return {"slow": Fake(ask), "onnxruntime": found["onnxruntime"]} if room == "onnxsmith.targets.judges" else found

    monkeypatch.setattr(rooms, "members", members)
    report, checks = checked(write(tmp_path, DET), "all")
    asked = {one.target: one.stage for one in checks if one.judge}
    assert asked == {"slow": Stage.NOT_TRIED, "onnxruntime": Stage.AGREED}
    assert report.problems[0].id == "runtime/timeout"
    assert {one.id for one in report.problems[1:]} == {"target/refused"}, "what tables refuse"
    assert report.verdict is Verdict.FAILED


def test_a_target_that_is_not_there(tmp_path: Path, only: Any) -> None:
    absent = Problem("target/not-installed", "it is not installed", fix="pip install it")
    only(Fake(None, missing=absent))
    report, (one,) = checked(write(tmp_path, DET), "fake")
    assert report.problems == (absent,)
    assert report.verdict is Verdict.FAILED
    assert one.stage is Stage.NOT_TRIED


def test_an_unknown_target(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.check(write(tmp_path, DET), ["openvin"])
    assert caught.value.problem.id == "target/unknown"
    assert "write openvino in place of openvin" in caught.value.problem.fix


def test_outputs_that_show_nothing_are_said(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "g (float[4] x) => (float[4] y) { z = Sub(x, x) y = Abs(z) }")
    report, (one,) = checked(path, "onnxruntime")
    assert one.stage is Stage.RAN
    assert "proves nothing" in one.why
    assert any(note.startswith("output y: ") for note in one.notes)
    assert report.verdict is Verdict.CANNOT_TELL


def test_a_given_input_is_run(tmp_path: Path, only: Any) -> None:
    seen: list[Any] = []

    def ask(model: ir.Model, feeds: Feeds | None) -> Answer:
        seen.append(feeds)
        return Answer(Stage.BUILT)

    only(Fake(ask))
    array = np.full((2, 4, 4), 7, np.float32)
    checked(write(tmp_path, DET), "fake", inputs={"x": array})
    assert np.array_equal(seen[0]["x"], array)


def test_a_model_in_memory(tmp_path: Path) -> None:
    model = from_text(DET)
    before = walk.count_nodes(model)
    _, (one,) = checked(model, "onnxruntime")
    assert one.stage is Stage.AGREED
    assert walk.count_nodes(model) == before


def test_a_part_behind_a_node_that_nothing_runs_gets_inputs_of_the_right_sizes() -> None:
    """A target that needs sizes can be asked about what follows the node, though no value of it can be computed."""
    text = '<ir_version: 10, opset_import: ["": 20, "no.such": 1]> g (float[n,4] x) => (float[n,4] y) { a = Neg(x) '
    model = from_text(text + "b = no.such.Op(a) y = Relu(b) }")
    (middle,) = (node for node in model.graph if node.op_type == "Op")
    middle.outputs[0].type, middle.outputs[0].shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["n", 4])
    subject = Subject(model, None, (Feed("given", {}, {"x": np.zeros((3, 4), np.float32)}),))
    part = without(subject.shaped, [node for node in subject.shaped.graph if node.op_type == "Op"])
    assert part is not None
    feeds = subject.part_feeds(part)
    assert feeds is not None
    assert {name: np.shape(value) for name, value in feeds.items()} == {"b.given": (3, 4)}
    assert subject.part_feeds(part, only_real=True) is None


TRACT = pytest.mark.skipif(find_spec("tract") is None, reason="tract is not installed")


@TRACT
def test_sizes_that_tract_needs_are_not_called_dynamic(tmp_path: Path) -> None:
    """Two symbols that have to be equal: tract runs at sizes, and refuses the symbols."""
    text = HEAD + "g (float[n,4] x, float[m,4] z) => (float[k,8] y) { a = Concat<axis = 1>(x, z) y = Relu(a) }"
    report, (one,) = checked(write(tmp_path, text), "tract")
    assert one.stage is Stage.AGREED
    assert one.shapes.startswith("n=")
    assert "unify" in one.symbols
    assert [node.op for node in one.nodes] == ["Concat"]
    assert "tract agreed at fixed sizes only (n=" in report.headline
    assert report.verdict is Verdict.DONE  # the sizes are told in a call: the file stays as it is


@TRACT
def test_a_file_that_tract_takes_only_after_our_preparation_is_refused_as_it_is(tmp_path: Path) -> None:
    model = from_text(HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) b = Abs(a) y = Relu(b) }")
    model.graph[0].outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    model.graph[0].outputs[0].shape = ir.Shape([7, 4])
    path = tmp_path / "m.onnx"
    onnx.save(ir.to_proto(model), path)
    report, (one,) = checked(path, "tract")
    assert one.changed == "without the declared shapes of intermediate tensors"
    assert "unify" in one.as_it_is
    assert "tract refused the unchanged file, agreed without the declared shapes" in report.headline
    assert report.verdict is Verdict.DIFFERENT
    result = onnxsmith.check(path, ["tract"], tmp_path / "f.onnx", fix=True)
    assert result.report.verdict is Verdict.DONE, result.report.to_json()
    assert result.report.headline.endswith("tract agreed")
    assert result.model.graph[0].outputs[0].shape is None


def test_a_file_that_is_taken_at_fixed_sizes_only_is_refused_as_it_is(tmp_path: Path, only: Any) -> None:
    def ask(model: ir.Model, feeds: Feeds | None) -> Answer:
        if not all(value.shape.is_static() for value in model.graph.inputs):
            return Answer(Stage.PARSED, Refusal("it needs fixed sizes", Stage.PARSED))
        return Answer(Stage.BUILT)

    only(Fake(ask))
    path = write(tmp_path, DET)
    told = onnxsmith.check(path, ["fake"], tmp_path / "f.onnx", fix=True)
    assert told.report.verdict is Verdict.DIFFERENT
    assert "fake refused the unchanged file, built with its sizes fixed (n=" in told.report.headline
    assert (
        "nothing was written: fake accepts the model only with fixed sizes; give these sizes, for example --dim n="
        in (told.report.headline)
    )
    assert not (tmp_path / "f.onnx").exists()
    verify = onnxsmith.Verify(sizes={"n": 3})
    done = onnxsmith.check(path, ["fake"], tmp_path / "f.onnx", fix=True, verify=verify)
    assert done.report.verdict is Verdict.DONE, done.report.to_json()
    assert list(done.model.graph.inputs[0].shape) == [3, 4, 4]


@pytest.mark.parametrize("seed", ["", "<seed = 1.0>"])
def test_random_numbers_are_said_and_never_agree(tmp_path: Path, seed: str) -> None:
    text = HEAD + f"g (float[4] x) => (float[4] y) {{ [rnd] r = RandomNormalLike{seed}(x) y = Add(x, r) }}"
    report, (one,) = checked(write(tmp_path, text), "onnxruntime")
    assert one.stage is Stage.RAN
    assert "the model draws random numbers (RandomNormalLike rnd)" in one.why
    assert report.verdict is Verdict.CANNOT_TELL


def test_sizes_that_were_not_tried_are_in_the_headline(tmp_path: Path) -> None:
    """The batch is declared open, and a Reshape takes one size only."""
    text = HEAD + "g (float[n,3] x) => (float[m,6] y) <int64[2] s = {1, 6}> { t = Reshape(x, s) y = Tanh(t) }"
    report, (one,) = checked(write(tmp_path, text), "onnxruntime")
    assert one.stage is Stage.AGREED
    assert "n was tried at 2 only" in report.headline


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
def test_the_precision_of_openvino_is_said(tmp_path: Path) -> None:
    text = HEAD + "g (float[n,3] x) => (float[n,3] y) { y = Tanh(x) }"
    _, (one,) = checked(write(tmp_path, text), "openvino")
    assert any("OpenVINO computed in float32" in note for note in one.notes)


BRANCHES = "c = ReduceMax<keepdims = 0>(x) p = Greater(c, z) [if] y = If(p) <then_branch = t () => (float[4] a)"
ELSE = "else_branch = e () => (float[4] b) { b = Neg(x) }>"
DRAWN = {
    "a draw": ("[rnd] r = RandomNormalLike(x) y = Add(x, r)", ("r", "x")),
    "an input that only the draw reads": ("[rnd] r = RandomNormalLike(x) y = Add(k, r)", ("r",)),
    "an output": ("[rnd] y = RandomNormalLike(x)", ()),
    "in a branch": (f"{BRANCHES} {{ [rnd] a = RandomNormalLike(x) }}, {ELSE}", ()),
    "read in a branch": (f"[rnd] r = RandomNormalLike(k) {BRANCHES} {{ a = Neg(r) }}, {ELSE}", ("r", "x")),
}


@pytest.mark.parametrize(("body", "cut"), DRAWN.values(), ids=DRAWN)
def test_where_random_numbers_can_become_inputs(body: str, cut: tuple[str, ...]) -> None:
    text = HEAD + f"g (float[4] x) => (float[4] y) <float z = {{0}}, float[4] k = {{1, 2, 3, 4}}> {{ {body} }}"
    model = from_text(text)
    assert random_cut(model, random_draws.nodes(model)) == cut


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
def test_the_first_node_with_a_wrong_shape_is_blamed(tmp_path: Path) -> None:
    """OpenVINO keeps the last axis of a real signal in the result of its DFT; the last node inherits the rank."""
    text = HEAD.replace("20]", "18]") + (
        "g (float[2,64,1] x) => (float[2,33] y) <int64 k = {64}, int64[1] ax = {-1}> "
        "{ f = DFT<axis = 1, onesided = 1>(x, k) a = ReduceL2<keepdims = 0>(f, ax) y = Log(a) }"
    )
    _, (one,) = checked(write(tmp_path, text), "openvino")
    assert one.stage is Stage.RAN
    assert [node.op for node in one.nodes] == ["DFT"]
    assert "seed" in one.nodes[0].evidence


@pytest.mark.parametrize(
    ("fix", "told"),
    [
        ("npm install it; or use --runtime onnxruntime", "npm install it"),
        (
            "use --runtime onnxruntime or --runtime reference",
            "leave this target out, or check another target with --target",
        ),
        ("pip install it", "pip install it"),
    ],
)
def test_a_fix_names_no_option_that_changes_nothing(tmp_path: Path, only: Any, fix: str, told: str) -> None:
    only(Fake(None, missing=Problem("runtime/not-installed", "it is not installed", fix=fix)))
    report, (one,) = checked(write(tmp_path, DET), "fake")
    assert report.problems[0].fix == told
    assert one.why == f"it is not installed: {told}"
