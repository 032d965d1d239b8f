"""All verbs count the same nodes of a file, and say that Constant nodes are not among them."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.model_changes import Difference
from onnxsmith.base.report.parts.model_summary import ModelSummary
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.comparison.graphs.diff import diff
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplify import simplify
from onnxsmith.viewer.inspection.inspect import inspect
from onnxsmith.viewer.view import view

MODEL = """<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) {
    a = Constant<value_float = 2.0>() b = Constant<value_float = 3.0>() p = Mul(x, a) q = Add(p, b) y = Relu(q) }"""


def rows(report: Report, kind: type[Part]) -> list[str]:
    """The rows of facts that name nodes."""
    first = next(iter(report.part(kind).blocks()))
    return [" ".join(row) for row in first.rows if "odes" in " ".join(row)]  # type: ignore[union-attr]


def test_constants_are_counted_apart_everywhere(tmp_path: Path) -> None:
    path, smaller = tmp_path / "m.onnx", tmp_path / "s.onnx"
    save(from_text(MODEL), path)
    simplified = simplify(path, smaller).report
    assert rows(simplified, Simplification) == ["nodes 3 → 3", "Constant nodes 2 → 0, not counted above"]
    assert rows(inspect(path), ModelSummary) == ["nodes 3", "Constant nodes 2 more"]
    assert rows(inspect(smaller), ModelSummary) == ["nodes 3"]
    assert rows(diff(path, smaller).report, Difference) == [
        "nodes 3 → 3, 3 in both, 3 of them unchanged",
        "Constant nodes 2 → 0, not counted above",
    ]
    assert rows(view(path).report, View) == ["m.onnx 3 nodes and 2 Constants in 1 level"]
    assert view(path).report.headline == "m.onnx: 3 nodes and 2 Constants"
    assert inspect(path).headline.startswith("m.onnx: 3 nodes and 2 Constants, ")
