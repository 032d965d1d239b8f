"""Selectors on the command line: every option that takes a node or a tensor takes a table too."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onnxsmith.cli.application import app
from onnxsmith.graph.files.load import load
from tests.editor.models import WIDE, saved

SOFT = '{ op = "Softmax" }'
SCALE = '{ producer = "scale" }'
OUT = ["-o", "out.onnx"]


@pytest.mark.parametrize(
    "words",
    [
        ["outline", "model.onnx", "own::F", "--node", SOFT, *OUT],
        ["extract", "model.onnx", "--from", SCALE, "--from", "w", "--to", '{ producer = { op = "my::Norm" } }', *OUT],
        ["expose", "model.onnx", SCALE, *OUT],
        ["cast", "model.onnx", "bfloat16", "--tensor", "h", *OUT],
        ["rename", "model.onnx", SCALE, "scaled_x", *OUT],
        ["rename", "model.onnx", SOFT, "softmax", "--kind", "node", *OUT],
        ["split", "model.onnx", "--at", SCALE, "-o", "pieces"],
    ],
)
def test_a_table(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(WIDE, tmp_path)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    if words[0] == "rename":
        names = {text for node in load(tmp_path / "out.onnx").graph for text in (node.name, node.outputs[0].name)}
        assert words[3] in names


@pytest.mark.parametrize("words", [["outline", "model.onnx", "own::F", "--node"], ["expose", "model.onnx"]])
def test_a_table_that_is_none(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(WIDE, tmp_path)
    result = CliRunner().invoke(app, [*words, "{ op = Softmax }", *OUT])
    assert result.exit_code == 2
    assert "edit/selector" in result.output
