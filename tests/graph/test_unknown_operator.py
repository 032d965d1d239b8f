"""A misspelt operator is named with the one that is meant; the fix writes a corrected file."""

from __future__ import annotations

import shlex
from pathlib import Path

import onnx
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError


def misspelt(path: Path) -> Path:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n,4] x) => (float[n,4] y) { h = Sigmoyd(x) y = Relu(h) }'
    onnx.save(onnx.parser.parse_model(text), path / "m.onnx")
    return path / "m.onnx"


def test_the_fix_writes_a_corrected_file(tmp_path: Path) -> None:
    file = misspelt(tmp_path)
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.simplify(file)
    assert "the nearest name is Sigmoid" in caught.value.problem.why
    (remedy,) = caught.value.problem.remedies
    before = file.read_bytes()
    exec(shlex.split(remedy.text)[2])
    assert file.read_bytes() == before
    assert onnxsmith.simplify(tmp_path / "m-fixed.onnx").ok


def test_a_check_says_what_onnxruntime_says(tmp_path: Path) -> None:
    report = onnxsmith.check(misspelt(tmp_path), targets=["onnxruntime"]).report
    assert "ONNX has no operator of this name; the nearest name is Sigmoid" in report.problems[0].why


def test_an_operator_that_the_opset_lacks_is_no_unexpected_error(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y) { y = Gelu(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    report = onnxsmith.check(tmp_path / "m.onnx", targets=["onnxruntime"]).report
    assert "Gelu exists since opset 20" in report.problems[0].why
