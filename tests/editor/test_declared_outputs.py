"""What a file declares of its outputs survives an edit where inference knows less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

import onnxsmith
from tests.editor.models import saved

SHAPED = """<ir_version: 10, opset_import: ["": 21]>
g (float[2,6] x, int64[2] shape) => (float[2,num] y, float[rows,num] z, float[3,4] w)
{
  [same] a = Identity(x)
  y = Reshape(a, shape)
  z = Reshape(a, shape)
  w = Reshape(a, shape)
}"""


def shapes(path: Path) -> dict[str, list[object]]:
    graph = onnxsmith.load(path).graph
    return {
        value.name or "": [dim if isinstance(dim, int) else dim.value for dim in value.shape or ()]
        for value in graph.outputs
    }


def test_declared_sizes_and_names_survive_an_edit_that_changes_no_number(tmp_path: Path) -> None:
    path = saved(SHAPED.replace("float[3,4] w", "float[2,6] w"), tmp_path)
    before = shapes(path)
    with onnxsmith.edit(path, verify=False) as m:
        m.remove("same", same=True)
    assert shapes(path) == before


def test_a_shared_name_does_not_survive_a_change_and_the_report_says_so(tmp_path: Path) -> None:
    path = saved(SHAPED, tmp_path)
    with onnxsmith.edit(path, verify=False) as m:
        m.insert("Neg", after="x")
    now = shapes(path)
    assert now["z"][0] == "rows"
    assert "num" not in now["z"]
    assert m.result is not None
    assert any("the shape of z is now declared as" in note for note in m.result.report.parts[0].notes)  # type: ignore[attr-defined]


def test_a_size_does_not_survive_a_dimension_that_opens(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
      g (float[1,4] x) => (int64[2,4] y) { y = NonZero(x) }"""
    path = saved(text, tmp_path)
    with onnxsmith.edit(path, verify=False) as m:
        m.set_dim("x:0=n")
    assert shapes(path)["y"][1] != 4


def test_a_data_file_of_another_name_is_reported_when_nothing_uses_it_any_more(tmp_path: Path) -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [onnx.helper.make_tensor_value_info("x", 1, [1000])],
            [onnx.helper.make_tensor_value_info("y", 1, [1000])],
            [onnx.numpy_helper.from_array(np.ones(1000, np.float32), "w")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 21)],
        ir_version=10,
    )
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    with onnxsmith.edit(path) as m:
        m.rename("y", "z")
    assert m.result is not None
    assert "m.bin is no longer used by m.onnx" in m.result.report.parts[0].notes  # type: ignore[attr-defined]
    assert (tmp_path / "m.bin").exists()
    with onnxsmith.edit(path) as m:
        m.rename("z", "y")
    assert m.result is not None
    assert not m.result.report.parts[0].notes  # type: ignore[attr-defined]


LOOPED = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x, int64 k) => (float[n,4] last, float[trips,rows,4] trace) <bool go = {1}> {
  a = Tanh(x)
  last, trace = Loop(k, go, a) <
      body = b (int64 i, bool c, float[rows,4] s) => (bool c2, float[rows,4] s2, float[rows,4] t) {
    c2 = Identity(c)
    inner = Mul(s, a)
    s2 = Add(inner, s)
    t = Neg(inner)
  }>
}"""


def declarations(path: Path) -> tuple[dict[str, list[object]], list[str]]:
    """The declared outputs, and the names of the other declared values, of bodies too."""
    proto = onnx.load(path)
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    weights = {one.name for one in proto.graph.initializer}
    return shapes(path), [one.name for graph in graphs for one in graph.value_info if one.name not in weights]


def test_exposing_a_tensor_of_a_body_keeps_the_declarations_of_other_outputs(tmp_path: Path) -> None:
    path = saved(LOOPED, tmp_path)
    before = declarations(path)
    with onnxsmith.edit(path) as m:
        m.expose("inner")
    now = declarations(path)
    assert {name: now[0][name] for name in before[0]} == before[0]
    assert m.result is not None
    assert not [note for note in m.result.report.parts[0].notes if "declared" in note]  # type: ignore[attr-defined]


def test_what_was_inferred_for_a_look_is_not_declared_after_a_conversion(tmp_path: Path) -> None:
    for change in (lambda m: m.opset(20), lambda m: m.extract(None, ["last", "trace"])):
        path = saved(LOOPED, tmp_path)
        before = declarations(path)
        with onnxsmith.edit(path) as m:
            assert m.tensor("a").dtype
            change(m)
        assert declarations(path) == before
