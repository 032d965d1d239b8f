"""`bench` says of a pair what `compare` says: one input that shows nothing is not the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

TEXT = """<ir_version: 9, opset_import: ["": 17]> g (float[1,64] x) => (float[1,64] y) <float z = {LIMIT}> {
  a = Sub(x, z) y = Relu(a) }"""


def test_an_input_that_shows_nothing_is_followed_by_others(tmp_path: Path) -> None:
    paths = []
    for limit in ("0.5", "0.25"):
        paths.append(tmp_path / f"{limit}.onnx")
        save(from_text(TEXT.replace("LIMIT", limit)), paths[-1])
    zeros = {"x": np.zeros((1, 64), np.float32)}
    assert onnxsmith.compare(*paths).report.verdict is Verdict.DIFFERENT
    found = onnxsmith.bench(*paths, inputs=zeros, seconds=0.1)
    assert "OUTPUTS DIFFER" in found.report.headline
