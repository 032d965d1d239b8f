"""How much larger folded constants may make a file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer import growth
from onnxsmith.optimizer.simplification_rounds import simplified

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
REFERENCE = Verify(runtime="reference")


def expanded(elements: int, stored: int) -> onnx.ModelProto:
    """A model that stores `stored` floats, and computes `elements` floats of two constants: one group of nodes."""
    weights = np.arange(stored, dtype=np.float32)
    text = (
        HEAD + f"(float[N,{stored}] x) => (float[N,{stored}] y, float[M] z)"
        f"<int64[1] n = {{{elements}}}, float[1] w = {{2}}> {{\n"
        "a = Expand(w, n)\n b = Sqrt(a)\n s = ReduceMax<keepdims = 0>(x)\n z = Add(s, b)\n y = Add(x, stored)}"
    )
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "stored"))
    return proto


def sized(tmp_path: Path, elements: int, stored: int) -> Path:
    onnx.save(expanded(elements, stored), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def test_a_small_file_may_grow_by_a_megabyte_and_says_so(tmp_path: Path) -> None:
    file = sized(tmp_path, 100_000, 100_000)
    result = onnxsmith.simplify(file, tmp_path / "out.onnx", verify=REFERENCE)
    part = result.report.part(Simplification)
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == ["ReduceMax", "Add", "Add"]
    assert any("--max-growth 0 keeps the nodes instead" in note for note in part.notes)


@pytest.mark.parametrize(("elements", "stored"), [(300_000, 1_000_000), (100_000, 1_000)])
def test_more_than_a_megabyte_or_three_times_the_size_stays_nodes_until_asked(
    tmp_path: Path, elements: int, stored: int
) -> None:
    file = sized(tmp_path, elements, stored)
    first = onnxsmith.simplify(file, tmp_path / "out.onnx", verify=REFERENCE).report.part(Simplification)
    assert "Expand" in [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    offered = next(found for note in first.notes if (found := re.search(r"--max-growth ([\d.]+) folds", note)))
    onnxsmith.simplify(file, tmp_path / "more.onnx", max_growth=float(offered[1]), verify=REFERENCE)
    assert "Expand" not in [node.op_type for node in onnx.load(tmp_path / "more.onnx").graph.node]


def test_a_file_that_may_not_grow_does_not(tmp_path: Path) -> None:
    file = sized(tmp_path, 100_000, 100_000)
    onnxsmith.simplify(file, tmp_path / "out.onnx", max_growth=0, verify=REFERENCE)
    assert (tmp_path / "out.onnx").stat().st_size < 1.01 * file.stat().st_size


def test_a_weight_that_is_stored_narrow_stays_narrow_until_asked() -> None:
    ones = ", ".join(["1"] * 65_536)
    text = (
        f"(float[N,256] x) => (float[N,256] y) <float16[256,256] w = {{{ones}}}> "
        "{ a = Cast<to = 1>(w)\n y = MatMul(x, a) }"
    )
    kept, part = simplified(from_text(HEAD + text))
    assert [node.op_type for node in kept.graph] == ["Cast", "MatMul"]
    assert any("stored in fewer bits" in entry.why_not for entry in part.refused)
    wide, _ = simplified(from_text(HEAD + text), max_growth=1.5)
    assert [node.op_type for node in wide.graph] == ["MatMul"]


@pytest.mark.parametrize("share", [-1.0, float("nan"), float("inf")])
def test_a_share_that_is_none_is_refused(tmp_path: Path, share: float) -> None:
    save(from_text(HEAD + "(float[N] x) => (float[N] y) { y = Abs(x) }"), tmp_path / "in.onnx")
    with pytest.raises(onnxsmith.OnnxsmithError, match="cannot grow by the share"):
        onnxsmith.simplify(tmp_path / "in.onnx", max_growth=share)


def test_what_a_file_may_grow_by() -> None:
    assert growth.foldable(100, None) == 300
    assert growth.foldable(10 << 20, None) == 1 << 20
    assert growth.foldable(1000 << 20, None) == 10 << 20
    assert growth.foldable(1000, 0.5) == 500
    assert growth.foldable(1000, 0.0) == 0


def test_a_share_of_any_size_is_a_number_of_bytes() -> None:
    assert growth.foldable(100, 1e308) > 1 << 60
    assert growth.foldable(100, 0.5) == 50
