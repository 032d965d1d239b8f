"""`--keep-open`: axes of fixed size stay open, though the model declares a size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import get
from tests.conftest import Refused

COMPUTED = """<ir_version: 9, opset_import: ["": 17]>
g (float[1,6,8] x, float[1,6] m) => (float[2,6,4] y, float[1,6] z) <int64[1] zero = {0}, int64[1] two = {2},
   int64[2] rest = {6, 4}> {
    shape = Shape(x)
    batch = Gather(shape, zero)
    double = Mul(batch, two)
    target = Concat<axis=0>(double, rest)
    y = Reshape(x, target)
    z = Abs(m)
}"""
FIXED = COMPUTED.replace("shape = Shape(x)", "shape = Abs(two)").replace("Mul(batch, two)", "Identity(two)")


def stored(text: str, folder: Path) -> Path:
    save(from_text(text), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("asked", [["n"], ["x:0=n", "m:0=n"]])
def test_an_axis_is_kept_open_and_compared_at_other_sizes(tmp_path: Path, asked: list[str]) -> None:
    path = stored(COMPUTED, tmp_path)
    result = onnxsmith.simplify(path, tmp_path / "out.onnx", keep_open=asked)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert walk.count_nodes(result.model) < 6
    assert [value.shape for value in result.model.graph.inputs] == [("n", 6, 8), ("n", 6)]
    assert [str(value.shape) for value in result.model.graph.outputs] == ["[2*n,6,4]", "[n,6]"]
    with get("onnxruntime").prepare(tmp_path / "out.onnx") as session:
        x = np.arange(3 * 6 * 8, dtype=np.float32).reshape(3, 6, 8)
        found: dict[str, Any] = session.run({"x": x, "m": -np.ones((3, 6), np.float32)})
    np.testing.assert_array_equal(found["y"], x.reshape(6, 6, 4))
    assert {0, 1, 2, 3} <= set((result.report.part(Verification).sizes or {})["n"])


def test_without_the_option_the_report_says_what_became_constant(tmp_path: Path) -> None:
    path = stored(COMPUTED, tmp_path)
    said = onnxsmith.simplify(path, tmp_path / "out.onnx").report.part(Simplification).notes
    assert any("1 Shape node removed" in one and "--keep-open x:0=batch" in one for one in said)
    others = onnxsmith.simplify(stored(FIXED, tmp_path), verify=False).report.part(Simplification).notes
    assert not any("--keep-open" in one for one in others)


def test_an_axis_that_the_graph_fixes_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = stored(FIXED, tmp_path)
    with refused("model/closed-axis") as refusal:
        onnxsmith.simplify(path, tmp_path / "out.onnx", keep_open=["n"])
    assert "set-dim MODEL x:0=n m:0=n" in refusal.problem.fix
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("asked", ["q:0=n", "x:5=n", "x:0", "x:0=2", "3"])
def test_texts_that_name_no_axis_are_refused(tmp_path: Path, refused: Refused, asked: str) -> None:
    with refused("simplify/no-such-port"):
        onnxsmith.simplify(stored(COMPUTED, tmp_path), keep_open=[asked])


def test_an_open_axis_is_not_opened_again(tmp_path: Path, refused: Refused) -> None:
    path = stored(
        COMPUTED.replace("float[1,6,8] x", "float[n,6,8] x").replace("float[2,6,4]", "float[m,6,4]"), tmp_path
    )
    with refused("simplify/no-such-port") as refusal:
        onnxsmith.simplify(path, keep_open=["x:0=b"])
    assert "dynamic already" in refusal.problem.what
