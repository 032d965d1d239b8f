"""`set-dim`: an initializer that is a graph input too holds sizes like any other constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.helper
import onnx.parser
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.editor.edit import Edit
from tests.editor.test_set_dim import HEAD, ROWS, part

RESHAPED = """<ir_version: 3, opset_import: ["": 8]>
g (float[1,4,2] x) => (float[1,3] z)
<int64[2] s = {1,8}, float[8,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}>
{ y = Reshape(x, s) z = MatMul(y, w) }"""
SQUEEZED = """g (float[2,1,4] x) => (float[8] y) <int64[1] k = {1}, int64[1] s = {8}>
{ a = Squeeze(x, k) y = Reshape(a, s) }"""
SINGLE = "g (float[1,2] x, float[1,2] z) => (float[1,2] y) <float[1,2] b = {1,2}> { a = Add(x, b) y = Mul(a, z) }"


def listed(text: str, folder: Path) -> Path:
    """The model with all its initializers among its inputs, as IR version 3 demands."""
    model = onnx.parser.parse_model(text)
    for one in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(one.name, one.data_type, one.dims))
    onnx.save(model, str(folder / "model.onnx"))
    return folder / "model.onnx"


def opened(path: Path, dims: str | list[str]) -> Edit:
    with onnxsmith.edit(path, path.with_name("dynamic.onnx")) as m:
        m.set_dim(dims)
    assert m.result is not None
    assert m.result.ok
    onnx.checker.check_model(str(path.with_name("dynamic.onnx")), full_check=True)
    return m


def notes(m: Edit) -> str:
    assert m.result is not None
    return "\n".join(next(one for one in m.result.report.parts if isinstance(one, Edits)).notes)


def inputs(path: Path) -> list[str]:
    return [one.name for one in onnx.load(str(path.with_name("dynamic.onnx"))).graph.input]


@pytest.mark.parametrize("kind", list(ROWS))
def test_a_default_is_replaced_like_a_constant(kind: str, tmp_path: Path) -> None:
    m = opened(listed(HEAD + ROWS[kind], tmp_path), "x:0=batch")
    assert [note for note in part(m).notes if "each row agrees with the original" in note], part(m)


def test_ir_version_3(tmp_path: Path) -> None:
    path = listed(RESHAPED, tmp_path)
    m = opened(path, "x:0=n")
    assert inputs(path) == ["x", "w"]
    assert "s is no longer a graph input: its default value contained a size, which was replaced" in notes(m)
    assert "IR version 3 → 4" in notes(m)
    x = np.random.default_rng(0).random((5, 4, 2)).astype(np.float32)
    whole = onnxsmith.run(path.with_name("dynamic.onnx"), {"x": x}).outputs["z"]
    for row in range(5):
        np.testing.assert_allclose(
            whole[row : row + 1], onnxsmith.run(path, {"x": x[row : row + 1]}).outputs["z"], 1e-6
        )


def test_a_default_that_holds_no_size_stays_an_input(tmp_path: Path) -> None:
    path = listed(HEAD + SQUEEZED, tmp_path)
    opened(path, "x:0=n")
    assert inputs(path) == ["x", "k"]


def test_a_default_that_is_expanded_still_takes_the_callers_value(tmp_path: Path) -> None:
    path = listed(HEAD + SINGLE, tmp_path)
    opened(path, ["x:0=n", "z:0=n"])
    assert inputs(path) == ["x", "z", "b"]
    feed = {"x": np.ones((3, 2), np.float32), "z": np.ones((3, 2), np.float32), "b": np.full((1, 2), 5, np.float32)}
    assert np.array_equal(onnxsmith.run(path.with_name("dynamic.onnx"), feed).outputs["y"], np.full((3, 2), 6))
