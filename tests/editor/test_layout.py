"""layout: ports in another order of axes, everything inside as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.single_steps import Layout
from onnxsmith.editor.edit import Edit, edited
from onnxsmith.graph.files.text import from_text
from tests.editor.models import saved

CONV = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,3,h,w] x, bool flag) => (float[n,2,h,w] y, float[n,3,h,w] z) <float[2,3,1,1] k = {1,2,3,4,5,6}> {
  y = Conv(x, k)
  z = If(flag) <
    then_branch = t () => (float[n,3,h,w] r) { r = Neg(x) },
    else_branch = e () => (float[n,3,h,w] q) { q = Identity(x) }
  >
}"""
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
ON = np.array(True)


def run(path: Path, **feeds: Any) -> dict[str, Any]:
    return dict(onnxsmith.run(path, feeds).outputs)


def shapes(path: Path) -> dict[str, str]:
    graph = onnxsmith.load(path).graph
    return {value.name or "": str(value.shape) for value in (*graph.inputs, *graph.outputs)}


def test_input_and_output_of_a_convolution(tmp_path: Path) -> None:
    path, out = saved(CONV, tmp_path), tmp_path / "out.onnx"
    before = run(path, x=X, flag=ON)
    with onnxsmith.edit(path, out) as m:
        m.layout("x", "NHWC")
        m.layout(output="y", to="NHWC")
        m.rename("x", "image")
        m.rename("y", "features")
    after = run(out, image=X.transpose(0, 2, 3, 1), flag=ON)
    assert np.array_equal(after["features"], before["y"].transpose(0, 2, 3, 1))
    assert np.array_equal(after["z"], before["z"])  # a branch captures x
    assert shapes(out) == {"image": "[n,h,w,3]", "flag": "[]", "features": "[n,h,w,2]", "z": "[n,3,h,w]"}
    assert m.result is not None
    assert m.result.report.verdict is Verdict.DONE
    with onnxsmith.edit(out) as m:  # and back
        m.layout("image", "NCHW")
        m.layout(output="features", to=[0, 3, 1, 2])
    assert np.array_equal(run(out, image=X, flag=ON)["features"], before["y"])


def test_an_input_that_is_an_output(tmp_path: Path) -> None:
    path, out = (
        saved(CONV.replace("float[n,3,h,w] z)", "float[n,3,h,w] z, float[n,3,h,w] x)"), tmp_path),
        tmp_path / "o",
    )
    with onnxsmith.edit(path, out) as m:
        m.layout("x", "0,2,3,1")
    assert np.array_equal(run(out, x=X.transpose(0, 2, 3, 1), flag=ON)["x_transposed"], X)
    with onnxsmith.edit(path, out) as m:
        m.layout(output="x", to="NHWC")
    assert np.array_equal(run(out, x=X, flag=ON)["x_transposed"], X.transpose(0, 2, 3, 1))
    assert m.result is not None
    assert "called x_transposed" in " ".join(m.result.report.parts[0].notes)  # type: ignore[attr-defined]


def test_a_default_is_permuted_and_later_steps_see_the_new_order(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[2,3] x, float[n] v) => (float[n,2,3] y) <float[2,3] x = {1,2,3,4,5,6}, int64[2] at = {1,2}> {
      u = Unsqueeze(v, at)
      y = Mul(u, x) }"""
    path, out = saved(text, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.layout("x", [1, 0])
        m.extract(to="y")
    found = run(out, v=np.ones(1, np.float32))
    assert found["y"].tolist() == [[[1, 2, 3], [4, 5, 6]]]
    assert onnxsmith.load(out).graph.initializers["x"].const_value.numpy().tolist() == [[1, 4], [2, 5], [3, 6]]  # type: ignore[union-attr]


@pytest.mark.parametrize("dims", ["float[2,0,4,4]", "float[2,2,2,2]", "int8[n,c,h,w]", "bfloat16[1,3,a,a]"])
def test_dtypes_and_sizes(tmp_path: Path, dims: str) -> None:
    text = f'<ir_version: 10, opset_import: ["": 21]>\ng ({dims} x) => ({dims} y) {{ y = Identity(x) }}'
    path, out = saved(text, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.layout("x", "NHWC")
    assert onnxsmith.load(out).graph.inputs[0].shape != onnxsmith.load(path).graph.inputs[0].shape or "2,2,2" in dims


def test_a_wrong_transpose_is_found(tmp_path: Path) -> None:
    path = saved(CONV.replace("[n,3,h,w]", "[3,3,3,3]").replace("[n,2,h,w]", "[3,2,3,3]"), tmp_path)

    def change(edit: Edit) -> None:
        edit.layout("x", "NHWC")
        node = edit.model.graph[0]
        node.attributes["perm"] = ir.AttrInt64s("perm", [0, 3, 2, 1])

    assert edited(path, tmp_path / "out.onnx", change).report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "out.onnx").exists()


def test_given_inputs_are_in_the_old_layout(tmp_path: Path) -> None:
    path = saved(CONV, tmp_path)
    np.savez(tmp_path / "in.npz", x=X, flag=ON)
    result = edited(path, None, lambda m: m.layout("x", "NHWC"), inputs=[str(tmp_path / "in.npz")])
    assert any("given" in str(one) for one in result.report.parts[1].runs)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "id_", "fix"),
    [
        ({"input": "x", "to": "NWC"}, "edit/layout", "NHWC"),
        ({"input": "x", "to": "0,1,2"}, "edit/layout", "0,2,3,1"),
        ({"input": "x", "to": "0,1,2,3"}, "edit/layout", "0,2,3,1"),
        ({"input": "x", "to": "0,1,1,3"}, "edit/layout", "0,2,3,1"),
        ({"input": "x", "to": "NHCW"}, "edit/layout", "0,2,3,1"),
        ({"input": "x", "to": "N H"}, "edit/layout", "0,2,3,1"),
        ({"input": "flag", "to": "NHWC"}, "edit/layout", ""),
        ({"input": "xx", "to": "NHWC"}, "edit/no-match", "'x'"),
        ({"output": "x", "to": "NHWC"}, "edit/no-match", "'y'"),
        ({"input": "x"}, "edit/step-argument", "NHWC"),
        ({"input": "x", "output": "y", "to": "NHWC"}, "edit/step-argument", "NHWC"),
    ],
)
def test_refusals(fields: dict[str, Any], id_: str, fix: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(from_text(CONV)) as m:
        m.layout(**fields)
    assert caught.value.problem.id == id_
    assert fix in caught.value.problem.fix


def test_an_unknown_rank_can_be_declared(tmp_path: Path) -> None:
    model = from_text(CONV)
    model.graph.inputs[0].shape = None
    for value in model.graph.outputs:
        value.shape = None
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/layout"), onnxsmith.edit(model, verify=False) as m:
        m.layout("x", "NHWC")
    with onnxsmith.edit(model, verify=False) as m:
        m.tensor("x").value.shape = ir.Shape(["N", 3, "H", "W"])
        m.layout("x", "NHWC")
    assert str(m.inputs[0].shape) == "('N', 'H', 'W', 3)"


def test_the_command(tmp_path: Path) -> None:
    path, out, notes = str(saved(CONV, tmp_path)), tmp_path / "out.onnx", tmp_path / "p.toml"
    np.savez(tmp_path / "in.npz", x=X, flag=ON)
    Layout(
        model=path,
        input=("x=NHWC",),
        graph_output=("y=NHWC",),
        sample=(str(tmp_path / "in.npz"),),
        output=str(out),
        write_patch=str(notes),
    ).run()
    assert shapes(out)["x"] == "[n,h,w,3]"
    assert 'to = "NHWC"' in notes.read_text()
    for wrong in ((), ("NHWC",), ("=NHWC",)):
        with pytest.raises(onnxsmith.OnnxsmithError, match="edit/layout"):
            Layout(model=path, input=wrong, output=str(out)).run()
