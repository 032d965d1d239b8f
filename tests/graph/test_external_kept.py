"""Weights that were external data stay external data, also where a change puts all of them into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text

ROW = ", ".join(["1", "2"] * 2048)
MODEL = f"""<ir_version: 10, opset_import: ["": 20]>
g (float[n,64] x) => (float[n,64] y) <float[64,64] w = {{{ROW}}}> {{ t = Transpose(w) y = MatMul(x, t) }}"""


def cast(path: Path, to: Path) -> None:
    with onnxsmith.edit(path, to) as m:
        m.cast("float16")


def constant(path: Path, to: Path) -> None:
    with onnxsmith.edit(path, to) as m:
        m.constant("w", np.ones((64, 64), np.float32))


def simplify(path: Path, to: Path) -> None:
    onnxsmith.simplify(path, to)


@pytest.mark.parametrize("change", [cast, constant, simplify])
@pytest.mark.parametrize("external", [True, False])
def test_the_only_weight_changes(change: Any, external: bool, tmp_path: Path) -> None:
    path, to = tmp_path / "model.onnx", tmp_path / "to" / "made.onnx"
    onnxsmith.save(from_text(MODEL), path, external_data=external)
    to.parent.mkdir()
    change(path, to)
    assert sorted(one.name for one in to.parent.iterdir()) == ["made.onnx", "made.onnx.data"][: 1 + external]
    onnxsmith.run(to, {"x": np.ones((1, 64), np.float32)})
