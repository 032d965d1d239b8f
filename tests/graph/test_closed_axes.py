"""Axes that a model declares open, and that fit one size only, are named with the node."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.graph.files import closed_axes
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import closed_axes as run_axes

HEAD = '<ir_version: 10, opset_import: ["": 18]> '
HEADS = (
    HEAD
    + """g (float[batch,seq,8] x) => (float[batch,seq,8] y) <int64[4] s = {1,-1,2,4}, int64[3] t = {1,-1,8}> {
  a = Reshape(x, s) b = Relu(a) c = Reshape(b, t) [residual] y = Add(c, x) }"""
)
STATE = (
    HEAD
    + """g (float[5,batch,2] x) => (float[5,1,batch,2] y) <
  float[1,6,2] w = {1,2,3,4,5,6,7,8,9,1,2,3}, float[1,6,2] r = {1,2,3,4,5,6,7,8,9,1,2,3}, float[1,1,2] h = {0,0}> {
  [cell] y, z = GRU<hidden_size = 2>(x, w, r, , , h) }"""
)
OPEN = {
    "rows": HEAD + "g (float[n,4] x) => (float[n,4] y) { y = Relu(x) }",
    "two names of one size": HEAD + "g (float[n,4] x, float[m,4] z) => (float[n,4] y) { y = Mul(x, z) }",
    "multiples": HEAD
    + """g (float[b,1,h,4] x) => (float[b,1,h,4] y) <float[4] k = {1,1,2,1}> {
      a = MaxPool<kernel_shape = [2,1], strides = [2,1]>(x) r = Resize<mode = "nearest">(a, , k) y = Add(r, x) }""",
    "a table": HEAD
    + """g (float[n,2] x) => (float[n,2] y) <float[70,2] p, int64[1] z = {0}, int64[1] o = {1}> {
      s = Shape(x) e = Gather(s, z) q = Slice(p, z, e, z) y = Add(x, q) }""".replace(
        "float[70,2] p", "float[70,2] p = {" + ",".join(["1"] * 140) + "}"
    ),
}


def test_shapes_that_fit_one_size_are_found_without_a_run() -> None:
    (found,) = closed_axes.closed(from_text(HEADS))
    assert (found.symbol, found.size, found.other) == ("batch", 1, 2)
    assert found.node == "Add residual"
    assert found.places == ("x:0",)


@pytest.mark.parametrize(("text", "node"), [(HEADS, "Add residual"), (STATE, "GRU cell")])
def test_a_run_names_the_axis_and_the_node(text: str, node: str) -> None:
    (found,) = run_axes.closed(from_text(text), {})
    assert (found.symbol, found.size) == ("batch", 1)
    assert found.node == node


@pytest.mark.parametrize("kind", list(OPEN))
def test_axes_that_are_open_are_not_named(kind: str) -> None:
    model = from_text(OPEN[kind])
    assert not closed_axes.closed(model)
    assert not run_axes.closed(model, {})


def test_verbs_say_it_and_the_fix_opens_the_axis(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(from_text(HEADS), path)
    said = [
        next(one for one in onnxsmith.inspect(path).problems if one.id == "model/closed-axis"),
        next(one for one in onnxsmith.check(path, ["onnxruntime"]).report.problems if one.id == "model/closed-axis"),
    ]
    assert all("Add residual" in one.where for one in said)
    with onnxsmith.edit(path, tmp_path / "fixed.onnx") as m:
        m.set_dim("batch=1")
    with onnxsmith.edit(tmp_path / "fixed.onnx", tmp_path / "open.onnx") as m:
        m.set_dim("x:0=batch")
    assert not [one for one in onnxsmith.inspect(tmp_path / "open.onnx").problems if one.id == "model/closed-axis"]
    assert not run_axes.closed(onnxsmith.load(tmp_path / "open.onnx"), {})
