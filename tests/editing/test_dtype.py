"""dtype: ports of another dtype, everything inside as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.editing.edit import Edit, edited
from onnxsmith.report.verdict import Verdict
from tests.editing.models import saved
from tests.editing.test_edit import Swapped

IDS = """<ir_version: 10, opset_import: ["": 21]>
g (int64[n,m] ids, bool flag) => (float[n,m,2] y, int64[n,m] z) <float[5,2] table = {0,1,2,3,4,5,6,7,8,9}> {
  rows = Gather<axis = 0>(table, ids)
  two = Constant<value_float = 2.0>()
  y = Add(rows, two)
  z = If(flag) <
    then_branch = t () => (int64[n,m] r) { r = Neg(ids) }, else_branch = e () => (int64[n,m] q) { q = Abs(ids) }>
}"""
FEEDS = {"ids": np.array([[0, 4, 2]]), "flag": np.array(True)}


def run(path: Path, **feeds: Any) -> dict[str, Any]:
    return dict(onnxsmith.run(path, feeds).outputs)


def test_an_input_and_an_output(tmp_path: Path) -> None:
    path, out = saved(IDS, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.dtype("ids", "int32")
        m.dtype(output="y", to="float16")
        m.rename("ids", "tokens")
    before = run(path, **FEEDS)
    after = run(out, tokens=FEEDS["ids"].astype(np.int32), flag=FEEDS["flag"])
    assert after["y"].dtype == np.float16
    assert np.allclose(after["y"], before["y"])
    assert np.array_equal(after["z"], before["z"])
    ports = [(value.name, value.dtype.name) for value in onnxsmith.load(out).graph.inputs]
    assert ports == [("tokens", "INT32"), ("flag", "BOOL")]


def test_a_model_that_changed_inside_is_found(tmp_path: Path) -> None:
    def change(edit: Edit) -> None:
        edit.dtype("ids", "int32")
        edit._do(Swapped())

    assert edited(saved(IDS, tmp_path), tmp_path / "out.onnx", change).report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "out.onnx").exists()


def test_an_input_that_is_an_output(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] x, float[n] y) { y = Neg(x) }'
    out = tmp_path / "out.onnx"
    with onnxsmith.edit(saved(text, tmp_path), out) as m:
        m.dtype("x", "float64")
    graph = onnxsmith.load(out).graph
    assert [(value.name, value.dtype.name) for value in graph.outputs] == [("x_cast", "FLOAT"), ("y", "FLOAT")]


@pytest.mark.parametrize(
    ("given", "id_"),
    [
        ({"input": "ids", "to": "int64"}, "edit/dtype"),
        ({"input": "ids", "to": "string"}, "edit/dtype"),
        ({"input": "idz", "to": "int32"}, "edit/no-match"),
        ({"to": "int32"}, "edit/step-argument"),
        ({"input": "ids", "to": "int33"}, "build/dtype"),
    ],
)
def test_refusals(given: dict[str, str], id_: str, tmp_path: Path) -> None:
    path = saved(IDS, tmp_path)
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.dtype(**given)
    assert caught.value.problem.id == id_
    assert path.read_bytes() == before
