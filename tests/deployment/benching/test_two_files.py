"""The time of one file beside another, as `quantize` and `prune` ask for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onnxsmith.deployment.benching.two_files import time_ratio
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text


def stored(folder: Path, name: str, products: int) -> Path:
    """A model of several products of matrices."""
    steps = "".join(f"h{at + 1} = MatMul(h{at}, h{at})\n" for at in range(products))
    model = from_text(
        f"""<ir_version: 9, opset_import: ["": 17]> g (float[96,96] x) => (float[96,96] y) {{
            h0 = Identity(x)
            {steps}
            y = Identity(h{products})
        }}"""
    )
    save(model, folder / name)
    return folder / name


def test_two_files_have_a_ratio(tmp_path: Path) -> None:
    found = time_ratio(
        stored(tmp_path, "short.onnx", 2),
        stored(tmp_path, "long.onnx", 12),
        "onnxruntime",
        {"x": np.full((96, 96), 0.01, np.float32)},
    )
    assert found is not None
    assert found.ratio is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low <= found.ratio <= found.high


def test_a_file_that_does_not_run_gives_no_ratio(tmp_path: Path) -> None:
    short = stored(tmp_path, "short.onnx", 2)
    other = from_text(
        '<ir_version: 9, opset_import: ["": 17, "x": 1]> g (float[96,96] x) => (float[96,96] y) { y = x.No(x) }'
    )
    save(other, tmp_path / "other.onnx")
    assert time_ratio(short, tmp_path / "other.onnx", "onnxruntime", {"x": np.ones((96, 96), np.float32)}) is None
