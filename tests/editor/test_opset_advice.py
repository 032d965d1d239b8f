"""An opset that cannot be reached: the advice names an opset that works, in the words of the command."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.editor.edit import edited
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery.opset_conversion import convert

GRID = """<ir_version: 9, opset_import: ["": 20]>
g (float[1,1,4,4] x, float[1,4,4,2] at) => (float[1,1,4,4] y) { y = GridSample(x, at) }"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(GRID), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def refusal(change: object) -> Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        change()  # type: ignore[operator]
    return caught.value.problem


def test_the_verb_names_a_command_of_its_own(file: Path, tmp_path: Path) -> None:
    found = refusal(lambda: edited(file, tmp_path / "o.onnx", lambda m: m.opset(9)))
    assert f"`onnxsmith opset {file} 16 -o OUT`" in found.fix
    edited(file, tmp_path / "o.onnx", lambda m: m.opset(16))
    assert onnx.load(tmp_path / "o.onnx").opset_import[0].version == 16


def test_simplify_names_its_option(file: Path) -> None:
    assert refusal(lambda: onnxsmith.simplify(file, opset=9)).fix.endswith(": --opset 16")
    assert onnxsmith.simplify(file, opset=16).ok


def test_a_caller_without_such_an_option_names_none() -> None:
    assert "--" not in refusal(lambda: convert(from_text(GRID), 9)).fix


def test_a_lower_ir_version_is_written_by_the_advised_command(file: Path, tmp_path: Path) -> None:
    page = onnxsmith.explain("Unsupported model IR version: 9, max supported IR version: 8")
    assert "--ir-version 8" in str(page.parts)
    edited(file, tmp_path / "o.onnx", lambda m: m.opset(17, ir_version=8))
    assert onnx.load(tmp_path / "o.onnx").ir_version == 8
