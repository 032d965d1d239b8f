"""What a file declares of its outputs survives an edit where inference knows less."""

from __future__ import annotations

from pathlib import Path

import onnxsmith
from tests.editing.models import saved

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
    assert any("the shape of z is declared as" in note for note in m.result.report.parts[0].notes)  # type: ignore[attr-defined]


def test_a_size_does_not_survive_a_dimension_that_opens(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
      g (float[1,4] x) => (int64[2,4] y) { y = NonZero(x) }"""
    path = saved(text, tmp_path)
    with onnxsmith.edit(path, verify=False) as m:
        m.set_dim("x:0=n")
    assert shapes(path)["y"][1] != 4
