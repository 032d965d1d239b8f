"""Layers on several given inputs: each is compared, and the report says which one shows a layer's error first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers, LayersByInput
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs import layer_stage
from onnxsmith.comparison.outputs.layer_stage import chosen
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.generate import Feed

TEXT = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,3] y) <float top = {%s}> '
    "{ a = Exp(x)\n b = Min(a, top)\n y = Tanh(b) }"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(from_text(TEXT % "100.0"), tmp_path / "m.onnx")
    save(from_text(TEXT % "1.5"), tmp_path / "o.onnx")
    np.savez(tmp_path / "low.npz", x=np.zeros((1, 3), np.float32))
    np.savez(tmp_path / "high.npz", x=np.ones((2, 3), np.float32))
    return tmp_path


def test_a_fault_that_only_the_second_input_shows(folder: Path) -> None:
    report = onnxsmith.compare(
        "m.onnx", "o.onnx", inputs=["low.npz", "high.npz"], generate=False, per_layer=True
    ).report
    part = report.part(LayersByInput)
    assert [(one.differing, one.first) for one in part.inputs] == [(0, ""), (2, "b")]
    assert part.first == "given input 2 of 2 (high.npz)"
    assert [(one.name, one.input, one.count) for one in part.layers] == [("b", part.first, 1)]
    assert report.part(Layers).input == part.first
    assert report.verdict is Verdict.DIFFERENT
    assert f"; first on {part.first}; first error: b" in report.headline


def test_a_fault_that_no_output_shows(folder: Path) -> None:
    """The outputs agree on both inputs, and the layers do not: the stage runs on each."""
    for name, top in (("m", "100.0"), ("o", "20.0")):
        save(from_text((TEXT % top).replace("y = Tanh(b)", "y = Sign(b)")), folder / f"{name}.onnx")
    np.savez(folder / "higher.npz", x=np.full((2, 3), 4, np.float32))
    report = onnxsmith.compare(
        "m.onnx", "o.onnx", inputs=["low.npz", "high.npz", "higher.npz"], generate=False, per_layer=True
    ).report
    assert report.part(LayersByInput).first == "given input 3 of 3 (higher.npz)"


def test_samples_of_one_file(folder: Path) -> None:
    np.savez(folder / "all.npz", x=np.array([-1, 0, 1, 0], np.float32)[:, None, None] * np.ones((4, 1, 3), np.float32))
    report = onnxsmith.compare("m.onnx", "o.onnx", inputs=["all.npz"], generate=False, per_layer=True).report
    assert report.part(LayersByInput).first == "given input 3 of 4 (all.npz, sample 3)"


def test_equal_models_on_each(folder: Path) -> None:
    report = onnxsmith.compare(
        "m.onnx", "m.onnx", inputs=["low.npz", "high.npz"], generate=False, per_layer=True
    ).report
    assert report.part(LayersByInput).first == ""
    assert report.verdict is Verdict.DONE


def test_one_input_has_no_table(folder: Path) -> None:
    report = onnxsmith.compare("m.onnx", "o.onnx", inputs=["high.npz"], generate=False, per_layer=True).report
    assert not [one for one in report.parts if isinstance(one, LayersByInput)]


def test_of_many_those_that_differ_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_stage, "_MOST", 3)
    feeds = [Feed(str(number), {}, {"x": number}) for number in range(6)]
    kept, note = chosen(feeds, [feeds[4]], feeds[5])
    assert [one.label for one in kept] == ["0", "4", "5"]
    assert note == "layers were compared on 3 of 6 inputs, those on which outputs differ first"
    assert chosen(feeds[:2], [], Feed("generated", {}, {}))[0][-1].label == "generated"
