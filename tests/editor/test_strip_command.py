"""`onnxsmith strip`: what is removed is counted, and the numbers stay."""

from __future__ import annotations

from pathlib import Path

import onnxsmith
from onnxsmith.cli import application
from onnxsmith.graph.files.text import from_text
from tests import gallery

TEXT = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }'


def test_provenance_of_functions_goes(tmp_path: Path) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 20, "own": 1]> g (float[n] x) => (float[n] y) { y = own.twice(x) }\n'
        '<domain: "own", opset_import: ["": 20]> twice (a) => (b) { b = Add(a, a) }'
    )
    model = from_text(text)
    (function,) = model.functions.values()
    function.metadata_props["trace"] = "/home/anna/net.py"
    onnxsmith.save(model, tmp_path / "net.onnx")
    words = ["strip", str(tmp_path / "net.onnx"), "--what", "provenance", "-o", str(tmp_path / "b.onnx")]
    assert gallery.called(application.main, words)[1] == 0
    (function,) = onnxsmith.load(tmp_path / "b.onnx").functions.values()
    assert not function.metadata_props


def test_documentation_and_metadata_go(tmp_path: Path) -> None:
    model = from_text(TEXT)
    model.doc_string, model.metadata_props["author"] = "a network", "somebody"
    onnxsmith.save(model, tmp_path / "net.onnx")
    words = [
        "strip",
        str(tmp_path / "net.onnx"),
        "--what",
        "docs",
        "--what",
        "metadata",
        "-o",
        str(tmp_path / "b.onnx"),
    ]
    printed, status = gallery.called(application.main, words)
    assert status == 0, printed
    bare = onnxsmith.load(tmp_path / "b.onnx")
    assert not bare.doc_string
    assert "author" not in bare.metadata_props
    assert onnxsmith.diff(model, bare, ignore=["metadata"]).report.headline.endswith(": 1 description")
