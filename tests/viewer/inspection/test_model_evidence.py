"""`explain MESSAGE MODEL`: the model says which helps can help, and whether it has the fault of the message."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxsmith
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.explanations import MessageCause
from onnxsmith.viewer.inspection.cause_matching import known
from tests.viewer.inspection.test_message_fixes import followed, pasted

HEAD = '<ir_version: 8, opset_import: ["": 15]>\n'
CONSTANT_FIRST = HEAD + "g (float[4,5] x) => (float[2,5] y) <float[2,4] a = {1,2,3,4,5,6,7,8}> { [m] y = MatMul(a, x) }"
INPUT_FIRST = HEAD + "g (float[n,4] x) => (float[n,2] y) <float[4,2] a = {1,2,3,4,5,6,7,8}> { [m] y = MatMul(x, a) }"
COMPUTED = HEAD + "g (float[3,4] x) => (float[4,3] y) { t = Shape(x) o = Neg(t) k = Neg(o) [m] y = Reshape(x, k) }"
SIZED = HEAD + "g (float[n] x, int64[1] size) => (float[m] y) { y = Expand(x, size) }"
NODE = "Node [{}@ai.onnx]:(onnx_node!m) parse error: OpenCV(4.6.0) onnx_importer.cpp:2039: error: "
ASSERTION = "(-215:Assertion failed) constBlobs.find(node_proto.input(0)) == constBlobs.end() in function 'parseMatMul'"
INT32 = "Error Code 4: Internal Error (size: network input that is shape tensor must have type Int32)"


def explained(text: str, graph: str, folder: Path) -> Report:
    onnx.save(onnx.parser.parse_model(graph), str(folder / "model.onnx"))
    return onnxsmith.explain(text, folder / "model.onnx")


def commands(report: Report) -> str:
    return "\n".join(one.run for one in report.part(MessageCause).helps)


def test_every_condition_is_known() -> None:
    found = {one.when for message in known().values() for one in message.helps}
    assert found == {"", "symbolic-size", "computed-operand"}


def test_a_constant_first_operand_of_opencv_is_named(tmp_path: Path) -> None:
    report = explained(NODE.format("MatMul") + ASSERTION, CONSTANT_FIRST, tmp_path)
    assert report.headline == "this OpenCV takes no constant as the first operand of MatMul"
    assert "a, the first operand of m, is a constant in this model" in report.notes
    assert "pip install --upgrade opencv-python" in commands(report)
    assert "simplify" not in commands(report)
    assert "export" not in commands(report)


def test_a_model_without_the_fault_is_said(tmp_path: Path) -> None:
    report = explained(NODE.format("MatMul") + ASSERTION, INPUT_FIRST, tmp_path)
    assert any("x, the first operand of m, is not a constant in this model" in note for note in report.notes)


def test_the_swapped_operands_compute_the_same(tmp_path: Path) -> None:
    report = explained(NODE.format("MatMul") + ASSERTION, CONSTANT_FIRST, tmp_path)
    swap = next(one.run for one in report.part(MessageCause).helps if one.run.startswith("onnxsmith replace"))
    made = followed(tmp_path, shlex.split(swap))
    (node,) = (one for one in onnx.load(str(made)).graph.node if one.op_type == "MatMul")
    assert onnxsmith.simplify(made).ok
    assert "a" not in node.input


@pytest.mark.parametrize(
    ("op", "graph", "fold", "fix"),
    [
        ("MatMul", CONSTANT_FIRST, False, False),
        ("MatMul", INPUT_FIRST, False, True),
        ("Reshape", COMPUTED, True, False),
    ],
)
def test_helps_that_cannot_help_the_model_are_left_out(
    op: str, graph: str, fold: bool, fix: bool, tmp_path: Path
) -> None:
    report = explained(NODE.format(op) + "(-215:Assertion failed) something", graph, tmp_path)
    assert report.part(MessageCause).id == "opencv/parse-error"
    assert ("onnxsmith simplify" in commands(report)) == fold
    assert ("onnxsmith export" in commands(report)) == fix


def test_without_a_model_all_helps_are_there() -> None:
    cause = onnxsmith.explain(NODE.format("MatMul") + "something").part(MessageCause)
    assert len(cause.helps) == len(known()["opencv/parse-error"].helps)


@pytest.mark.skipif(os.name != "posix", reason="the command is written for a POSIX shell")
@pytest.mark.parametrize(
    ("file", "feed"),
    [("cast.toml", {"size": np.array([1], np.int32)}), ("constant.toml", {})],
    ids=["int32", "constant"],
)
def test_the_patches_for_a_shape_tensor_of_tensorrt(file: str, feed: dict[str, np.ndarray], tmp_path: Path) -> None:
    report = explained(INT32, SIZED, tmp_path)
    assert report.part(MessageCause).names == {"tensor": "size"}
    made = pasted(tmp_path, next(one.run for one in report.part(MessageCause).helps if f"> {file}; " in one.run))
    assert [one.name for one in onnx.load(str(made)).graph.input] == ["x", *feed]
    outputs = onnxsmith.run(made, {"x": np.ones(1, np.float32), **feed}).outputs
    assert np.array_equal(outputs["y"], np.ones(1))
