"""Targets by their tables: what is foreseen of a model without asking anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck, TargetChecks, refusals
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.profile_prediction import by_rules
from onnxsmith.deployment.checking.table_rewrites import unsearched, with_rewrite
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import _call_limits
from onnxsmith.targets.profiles.profile_reader import named

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
BOARD = """title = "A board"
version = "1"
unlisted = "refused"
opset = { max = 17 }

[[operators]]
names = ["Relu", "Neg"]
dtypes = ["float32"]

[[operators]]
names = ["MatMul"]
static = true
"""


def checked(folder: Path, text: str, table: str = BOARD) -> tuple[Verdict, TargetCheck]:
    onnxsmith.save(from_text(text), folder / "m.onnx")
    (folder / "board.toml").write_text(table)
    report = onnxsmith.check(folder / "m.onnx", [f"profile:{folder / 'board.toml'}"]).report
    (one,) = report.part(TargetChecks).checks
    assert not one.judge
    return report.verdict, one


def test_a_model_that_fits(tmp_path: Path) -> None:
    verdict, one = checked(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }")
    assert (verdict, one.stage, one.counts) == (Verdict.DONE, Stage.FITS, {"fits the table": 2})


def test_a_refused_node_has_its_reason(tmp_path: Path) -> None:
    verdict, one = checked(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) [e] y = Exp(a) }")
    assert (verdict, one.stage) == (Verdict.DIFFERENT, Stage.REFUSED)
    assert [(node.node, node.stage) for node in one.nodes] == [("e", Stage.REFUSED)]
    assert "not in the table" in one.nodes[0].why


def test_what_the_table_does_not_say_is_no_yes(tmp_path: Path) -> None:
    table = BOARD.replace('"refused"', '"unknown"')
    verdict, one = checked(tmp_path, HEAD + "g (float[n,4] x) => (float[n,4] y) { y = Exp(x) }", table)
    assert one.stage is Stage.NOT_TRIED
    assert verdict is Verdict.CANNOT_TELL
    assert one.nodes[0].stage is Stage.NOT_TRIED


def test_fixed_sizes_are_looked_at_second(tmp_path: Path) -> None:
    text = HEAD + "g (float[n,4] x) => (float[n,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> { y = MatMul(x, w) }"
    verdict, one = checked(tmp_path, text)
    assert (verdict, one.stage) == (Verdict.DONE, Stage.FITS)
    assert one.shapes.startswith("n=")
    assert any("with dynamic shapes" in note for note in one.notes)


def test_the_opset_is_of_the_whole_model(tmp_path: Path) -> None:
    text = HEAD.replace("17", "20") + "g (float[n,4] x) => (float[n,4] y) { y = Relu(x) }"
    verdict, one = checked(tmp_path, text)
    assert (verdict, one.stage, one.whole) == (Verdict.DIFFERENT, Stage.REFUSED, True)
    assert "opset 20" in one.why


def test_built_in_tables_are_targets(tmp_path: Path) -> None:
    onnxsmith.save(from_text(HEAD + "g (float[2,4] x) => (float[2,4] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    report = onnxsmith.check(tmp_path / "m.onnx", ["webgpu", "tensorrt-10"]).report
    assert [one.stage for one in report.part(TargetChecks).checks] == [Stage.FITS] * 2


def test_a_file_that_is_no_profile(tmp_path: Path) -> None:
    onnxsmith.save(from_text(HEAD + "g (float[2,4] x) => (float[2,4] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.check(tmp_path / "m.onnx", [f"profile:{tmp_path / 'none.toml'}"])
    assert caught.value.problem.id == "profile/unreadable"


OLD = """title = "An old reader"
version = "1"
unlisted = "unknown"
opset = { max = 13 }
max_ir_version = 7

[[operators]]
names = ["Relu", "Neg", "Softmax"]
"""


def test_every_limit_that_the_file_exceeds_is_named(tmp_path: Path) -> None:
    text = HEAD.replace("8", "10") + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }"
    _, one = checked(tmp_path, text, OLD)
    assert "the IR version is 10; the target accepts at most 7" in one.why
    assert "the model has opset 17; the target accepts at most 13" in one.why


def test_a_model_is_fixed_for_a_table(tmp_path: Path) -> None:
    text = HEAD.replace("8", "10") + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Softmax(a) }"
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    (tmp_path / "old.toml").write_text(OLD)
    target = f"profile:{tmp_path / 'old.toml'}"
    result = onnxsmith.check(tmp_path / "m.onnx", [target], tmp_path / "f.onnx", fix=True)
    assert result.report.verdict is Verdict.DONE, result.report.to_json()
    assert result.report.headline.endswith("fits the table")
    written = onnxsmith.load(tmp_path / "f.onnx")
    assert (written.ir_version, written.opset_imports[""]) == (7, 13)


def test_a_model_is_fixed_for_a_stated_version(tmp_path: Path) -> None:
    text = HEAD.replace("8", "10").replace("17", "21") + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }"
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    result = onnxsmith.check(tmp_path / "m.onnx", ["onnxruntime@1.17"], tmp_path / "f.onnx", fix=True)
    assert result.report.verdict is Verdict.DONE, result.report.to_json()
    assert onnxsmith.load(tmp_path / "f.onnx").opset_imports[""] <= 20


def test_a_table_that_no_rewrite_satisfies_says_so(tmp_path: Path) -> None:
    onnxsmith.save(from_text(HEAD + "g (float[n,4] x) => (float[n,4] y) { y = Exp(x) }"), tmp_path / "m.onnx")
    (tmp_path / "board.toml").write_text(BOARD)
    target = f"profile:{tmp_path / 'board.toml'}"
    result = onnxsmith.check(tmp_path / "m.onnx", [target], tmp_path / "f.onnx", fix=True)
    assert result.report.verdict is Verdict.DIFFERENT
    assert "no rewrite was found" in result.report.headline
    assert not (tmp_path / "f.onnx").exists()


DFT = HEAD.replace("17", "20") + "g (float[n,16,1] x) => (float[n,16,2] y) { [transform] a = DFT(x) y = Relu(a) }"


def test_a_table_that_refuses_a_model_names_a_known_rewrite(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnxsmith.save(from_text(DFT), file)
    report = onnxsmith.check(file, ["tensorrt-10"]).report
    (one,) = report.part(TargetChecks).checks
    assert one.rewrite.startswith("Fourier transforms replaced by products with constant matrices")
    (said,) = report.problems
    assert said.fix == f"`onnxsmith check {file} --target tensorrt-10 --fix -o fixed.onnx`"


def test_a_search_of_rewrites_for_a_table_ends_at_the_time_limit() -> None:
    subject = Subject(from_text(DFT))
    refused = by_rules("tensorrt-10", named("tensorrt-10"), subject)
    with _call_limits.within(0.0):
        found = with_rewrite(refused, named("tensorrt-10"), subject)
    assert found.rewrite == ""
    assert found.notes[-1] == "some rewrites that may help were not tried, because the time limit had passed"


def test_a_refusal_of_one_table_among_all_names_the_command_that_searches() -> None:
    refused = unsearched(by_rules("tensorrt-10", named("tensorrt-10"), Subject(from_text(DFT))))
    (said,) = refusals([refused], "a b.onnx", ["x"])
    start = "`onnxsmith check 'a b.onnx' --target tensorrt-10` looks for a rewrite; or write DFT as "
    assert said.fix.startswith(start)
