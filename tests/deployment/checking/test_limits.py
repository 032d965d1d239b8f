"""`check` finds an input, ends within its limit, and names what it did not try; onnx's own checks have rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.application import app
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Refusal
from tests.deployment.checking.fakes import Fake
from tests.deployment.checking.test_check import DET, HEAD, checked, write

NORM = "g (float[2,n] x, float[n] s, float[n] b) => (float[2,n] y) { y = InstanceNormalization(x, s, b) }"
SLOW = """g (float[n] x) => (float[n] y) <int64 k = {100000000}, bool t = {1}> {
    y = Loop(k, t, x) <body = body (int64 i, bool go, float[n] a) => (bool on, float[n] c) {
        on = Identity(go) c = Neg(a) }>
}"""


def test_an_input_that_another_runtime_takes() -> None:
    """onnxruntime loads the model, and fails on every input."""
    feeds = Subject(from_text(HEAD + NORM), sizes={"n": 5}).feeds
    assert feeds is not None
    assert {name: value.shape for name, value in feeds.items()} == {"x": (2, 5), "s": (5,), "b": (5,)}


def test_without_an_input_only_loading_is_asked_for(tmp_path: Path, only: Any) -> None:
    text = HEAD + "g (float[3] x) => (float[k] y) <int64[1] s = {4}> { a = Reshape(x, s) y = Relu(a) }"

    def ask(_model: Any, feeds: Feeds | None) -> Answer:
        assert feeds is None
        return Answer(Stage.BUILT)

    only(Fake(ask, runtime="onnxruntime"))
    report, (one,) = checked(write(tmp_path, text), "fake")
    assert one.why.startswith("only loading was tested, because no input was found")
    assert report.verdict is Verdict.CANNOT_TELL


def test_the_checks_of_onnx_have_rows(tmp_path: Path) -> None:
    _, checks = checked(write(tmp_path, DET), "onnx-checker", "onnx-shapes", "reference")
    assert [(one.target, one.stage) for one in checks] == [
        ("onnx-checker", Stage.PARSED),
        ("onnx-shapes", Stage.PARSED),
        ("reference", Stage.AGREED),
    ]
    assert "only parsed: read and checked, not run" in checks[0].notes


def test_what_they_refuse() -> None:
    conflict = from_text(HEAD + "g (float[2,3] x) => (float[2,3] y) { a = Neg(x) y = Relu(a) }")
    conflict.graph.outputs[0].shape = type(conflict.graph.inputs[0].shape)([3, 3])
    _, (checker, shapes) = checked(conflict, "onnx-checker", "onnx-shapes")
    assert checker.stage is Stage.PARSED
    assert shapes.stage is Stage.REFUSED
    assert "the operator computes 2 in dimension 0, but the file declares 3" in shapes.why


def test_a_wrong_number_that_the_file_declares_is_refused_at_fixed_sizes_as_well() -> None:
    conflict = from_text(HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) b = Abs(a) y = Relu(b) }")
    value = conflict.graph[0].outputs[0]
    value.dtype, value.shape = conflict.graph.inputs[0].dtype, type(conflict.graph.inputs[0].shape)(["n", 3])
    _, (shapes,) = checked(conflict, "onnx-shapes")
    assert shapes.stage is Stage.REFUSED
    assert shapes.changed == ""
    assert "the operator computes 4 in dimension 1, but the file declares 3" in shapes.why


def test_what_does_not_fit_the_limit_is_named(tmp_path: Path) -> None:
    report, checks = checked(write(tmp_path, DET), "onnxruntime", "reference", time_limit=0.5)
    assert {one.stage for one in checks} == {Stage.NOT_TRIED}
    assert all("the time limit had passed" in one.why for one in checks)
    assert report.verdict is Verdict.FAILED


def test_a_model_that_does_not_end(tmp_path: Path) -> None:
    begin = time.monotonic()
    _, checks = checked(write(tmp_path, HEAD + SLOW), "onnxruntime", "reference", time_limit=6)
    assert Stage.AGREED not in {one.stage for one in checks}
    assert time.monotonic() - begin < 60  # a broken limit takes minutes


def test_a_slow_search_for_the_nodes_ends(tmp_path: Path, only: Any) -> None:
    import onnxsmith.runtimes._call_limits as limits

    def ask(_model: Any, _feeds: Feeds | None) -> Answer:
        limits.left(0)  # as a runtime does before each call
        time.sleep(0.4)
        return Answer(Stage.PARSED, Refusal("it takes nothing", Stage.PARSED))

    only(Fake(ask))
    _, (one,) = checked(write(tmp_path, DET), "fake", time_limit=4)
    assert one.stage is Stage.REFUSED or "the time limit had passed" in one.why
    assert "not tried" in " ".join((*one.notes, one.why))


def test_quiet_prints_the_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, DET)
    with pytest.raises(SystemExit) as ended:
        app(["check", str(path), "--target", "openvino", "-q"])
    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert not shown.out
    assert "openvino refused 1 node" in shown.err
    assert "det" in shown.err


def test_an_export_names_only_targets_that_it_can_write_for(refused: Any) -> None:
    with refused("target/unknown") as refusal:
        onnxsmith.simplify(from_text(DET), target="onnx-checkers")
    assert "onnx-checker" not in refusal.problem.fix.partition("there are ")[2]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_limit_is_a_number_of_seconds(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.check(write(tmp_path, DET), ["onnxruntime"], time_limit=seconds)
    assert caught.value.problem.id == "runtime/bad-limit"
