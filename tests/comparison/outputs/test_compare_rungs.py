"""A comparison, a run and a dump of what the usual runtime lacks a kernel for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,3] x) => (float[n,3] y) { a = Cast<to = 16>(x)\n b = Tanh(a)\n y = Cast<to = 1>(b) }"""
DRAWS = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,3] x) => (float[n,3] y) { r = RandomNormalLike(x)\n y = Add(x, r) }"""
CLAUSE = "run on openvino: onnxruntime has no kernel for Tanh"


def test_two_graphs() -> None:
    result = onnxsmith.compare(from_text(TEXT), from_text(TEXT))
    assert result.ok
    assert CLAUSE in result.report.headline
    assert not onnxsmith.compare(from_text(TEXT), from_text(TEXT.replace("Tanh", "Sigmoid"))).ok


def test_a_named_runtime_is_kept_to(refused: Refused) -> None:
    with refused("runtime/no-kernel") as refusal:
        onnxsmith.compare(from_text(TEXT), from_text(TEXT), runtime="onnxruntime")
    assert refusal.problem.fix == "--runtime openvino, which accepts the model"


def test_graphs_that_draw() -> None:
    result = onnxsmith.compare(from_text(DRAWS), from_text(DRAWS))
    assert result.ok
    assert any("random numbers" in note for note in result.report.part(Verification).notes)
    assert not onnxsmith.compare(from_text(DRAWS), from_text(DRAWS.replace("Like(x)", "Like<mean = 1.0>(x)"))).ok


def test_run_and_dump(tmp_path: Path, refused: Refused) -> None:
    save(from_text(TEXT), tmp_path / "m.onnx")
    feeds = {"x": np.ones((2, 3), np.float32)}
    result = onnxsmith.run(tmp_path / "m.onnx", feeds)
    assert result.outputs["y"].shape == (2, 3)
    assert CLAUSE in result.report.notes[-1]
    with refused("runtime/no-kernel") as refusal:
        onnxsmith.run(tmp_path / "m.onnx", feeds, runtime="onnxruntime")
    assert refusal.problem.fix == "--runtime openvino, which accepts the model"
    dumped = onnxsmith.dump(tmp_path / "m.onnx", inputs=feeds)
    assert CLAUSE in dumped.report.notes[-1]
