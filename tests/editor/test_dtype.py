"""dtype: ports of another dtype, everything inside as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.editor.edit import Edit, edited
from tests.editor.models import saved
from tests.editor.test_edit import Swapped

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


PIXELS = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,3] image) => (float[n,3] y, float[n,3] z) { a = Relu(image)
  y = Neg(a)
  z = Exp(image) }"""


@pytest.mark.parametrize("order", ["insert first", "dtype first"])
def test_an_insert_behind_an_input_and_its_dtype_in_one_edit(order: str, tmp_path: Path) -> None:
    path, out = saved(PIXELS, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        if order == "insert first":
            m.insert("Div", after="image", operands=["$", 255.0])
            m.dtype("image", "uint8")
        else:
            m.dtype("image", "uint8")
            m.insert("Div", after="image_cast", operands=["$", 255.0])
    image = np.array([[0, 51, 255]], np.uint8)
    scaled = image.astype(np.float32) / 255
    assert np.allclose(run(out, image=image)["y"], run(path, image=scaled)["y"])
    assert np.allclose(run(out, image=image)["z"], run(path, image=scaled)["z"])


def test_an_insert_in_front_of_an_output_and_dtypes_in_any_order(tmp_path: Path) -> None:
    path, out = saved(PIXELS, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.dtype(output="y", to="float64")
        m.insert("Tanh", after="y")
        m.dtype(output="y", to="float16")
        m.dtype("image", "float64")
        m.dtype("image", "float16")
        m.layout("image", [1, 0])
    image = np.array([[1, -2, 3]], np.float16)
    y = run(path, image=image.astype(np.float32))["y"]
    assert np.allclose(run(out, image=image.T)["y"], np.tanh(y), atol=1e-3)


def test_an_insert_behind_an_output_and_then_its_dtype(tmp_path: Path) -> None:
    path, out = saved(PIXELS, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.insert("Tanh", after="y")
        m.dtype(output="y", to="float16")
    report = m.result.report if m.result else None
    assert report is not None
    assert report.verdict is Verdict.DONE


def test_a_wrong_tensor_in_front_of_a_change_is_found(tmp_path: Path) -> None:
    def change(edit: Edit) -> None:
        edit.insert("Tanh", after="image")
        edit.dtype("image", "float16")
        cast = next(node for node in edit.model.graph if node.op_type == "Cast")
        cast.append(ir.Node("", "Neg", [cast.outputs[0]], name="wrong"))
        wrong = edit.model.graph.node("wrong").outputs[0]
        wrong.name, wrong.type, wrong.shape = "wrong", cast.outputs[0].type, cast.outputs[0].shape
        cast.outputs[0].name, wrong.name = "inner", cast.outputs[0].name
        edit._work.original[wrong] = edit._work.original.pop(cast.outputs[0])
        for node in edit.model.graph:
            if node.op_type == "Tanh":
                node.replace_input_with(0, wrong)

    assert edited(saved(PIXELS, tmp_path), tmp_path / "out.onnx", change).report.verdict is Verdict.DIFFERENT


def test_an_output_that_is_listed_twice(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[n,4] y, float[n,4] y) { y = Relu(x) }"""
    path, out = saved(text, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.dtype(output="y", to="float16")
        m.layout(output="y", to=[1, 0])
    assert m.result.report.verdict is Verdict.DONE
    outputs = onnxsmith.load(out).graph.outputs
    assert [(value.name, value.dtype, str(value.shape)) for value in outputs] == [
        ("y", ir.DataType.FLOAT16, "[4,n]")
    ] * 2
