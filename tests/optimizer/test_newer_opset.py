"""A newer opset that would let more rules fire is named, and taken when asked."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

GELU = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n,8] x) => (float[n,8] y) <float root = {1.4142135}, float one = {1}, float half = {0.5}> {
    a = Div(x, root)\n b = Erf(a)\n c = Add(b, one)\n d = Mul(x, c)\n e = Mul(d, half)
    s = Sigmoid(e)\n y = Mul(e, s)
}
"""
RMS = """
    q = Mul(e, e)\n r = ReduceMean<axes = [-1]>(q)\n t = Add(r, eps)\n u = Sqrt(t)\n v = Div(e, u)\n y = Mul(v, scale)
}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(GELU), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_a_newer_opset_is_named_in_one_line(file: Path, tmp_path: Path) -> None:
    result = onnxsmith.simplify(file, tmp_path / "out.onnx")
    notes = result.report.part(Simplification).notes
    assert "opset 17 → 20 would allow 1 Gelu (--opset auto)" in notes
    assert "Gelu" not in operators(tmp_path / "out.onnx")


def test_several_newer_opsets_are_named_by_what_they_bring(tmp_path: Path) -> None:
    eight = ", float eps = {1e-5}, float[8] scale = {1, 2, 3, 4, 5, 6, 7, 8}>"
    text = GELU.replace("{0.5}>", "{0.5}" + eight).partition("s = Sigmoid")[0] + RMS
    save(from_text(text), tmp_path / "in.onnx")
    notes = onnxsmith.simplify(tmp_path / "in.onnx").report.part(Simplification).notes
    assert "opset 17 → 20 would allow 1 Gelu; 23 would allow 1 RMSNormalization (--opset auto)" in notes


def test_auto_takes_it(file: Path, tmp_path: Path) -> None:
    result = onnxsmith.simplify(file, tmp_path / "out.onnx", opset="auto")
    assert result.ok
    assert operators(tmp_path / "out.onnx") == ["Gelu", "Sigmoid", "Mul"]
    assert onnx.load(tmp_path / "out.onnx").opset_import[0].version == 20  # 24 has Swish, onnxruntime no kernel for it
    notes = result.report.part(Simplification).notes
    assert any(note.startswith("converted from opset 17 to") for note in notes)
    assert not any("would allow" in note for note in notes)


def test_auto_leaves_a_model_that_gains_nothing(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { a = Identity(x)\n y = Exp(a) }'
    save(from_text(text), tmp_path / "in.onnx")
    onnxsmith.simplify(tmp_path / "in.onnx", tmp_path / "out.onnx", opset="auto")
    made = onnx.load(tmp_path / "out.onnx")
    assert made.opset_import[0].version == 17
    assert operators(tmp_path / "out.onnx") == ["Exp"]


def test_auto_says_what_the_runtime_does_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.runtimes.onnxruntime.OnnxRuntime.newest_opset", lambda self: 19)
    save(from_text(GELU), tmp_path / "in.onnx")
    result = onnxsmith.simplify(tmp_path / "in.onnx", tmp_path / "out.onnx", opset="auto")
    assert (
        "opset 20 was not tried: the installed onnxruntime reads up to 19" in result.report.part(Simplification).notes
    )
    assert onnx.load(tmp_path / "out.onnx").opset_import[0].version == 17


@pytest.mark.parametrize("opset", ["newest", "-1", "1.5"])
def test_what_is_no_opset_is_refused(file: Path, tmp_path: Path, opset: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(file, tmp_path / "out.onnx", opset=opset)
    assert caught.value.problem.id == "export/opset"


SIZES = """
<ir_version: 7, opset_import: ["": 13]>
g (float[N,4,M] x) => (float[N,4,M] y) <int64[1] four = {4}, int64[1] ax = {0}, int64 zero = {0}, int64 two = {2}> {
    s = Shape(x)\n g = Gather(s, zero)\n u = Unsqueeze(g, ax)\n h = Gather(s, two)\n v = Unsqueeze(h, ax)
    c = Concat<axis = 0>(u, four, v)\n e = Exp(x)\n y = Reshape(e, c)
}
"""


@pytest.mark.parametrize("opset", [None, "auto"])
def test_what_another_rewrite_removed_is_not_counted(tmp_path: Path, opset: str | None) -> None:
    save(from_text(SIZES), tmp_path / "in.onnx")
    result = onnxsmith.simplify(tmp_path / "in.onnx", tmp_path / "out.onnx", opset=opset)
    part = result.report.part(Simplification)
    assert operators(tmp_path / "out.onnx") == ["Exp"]
    assert part.notes == ()
    assert part.refused == ()
    assert onnx.load(tmp_path / "out.onnx").opset_import[0].version == 13


def test_a_refusal_for_the_opset_that_stands_is_counted_once(tmp_path: Path) -> None:
    text = SIZES.replace("y)", "y, int64[1] k)").replace("y = Reshape", "k = Identity(v)\n y = Reshape")
    save(from_text(text), tmp_path / "in.onnx")
    part = onnxsmith.simplify(tmp_path / "in.onnx").report.part(Simplification)
    assert "opset 13 → 15 would allow 1 Shape with start and end (--opset auto)" in part.notes
