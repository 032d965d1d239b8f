"""`extract` at tensors whose operator is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.settings import Save
from onnxsmith.graph.files.text import from_text

TEXT = """<ir_version: 10, opset_import: ["": 20, "com.acme.ops": 3]>
g (float[1,4] x) => (float[1,4] z, float[1,4] u) {
   [fancy] y, s = com.acme.ops.Fancy (x)
   [more] t = com.acme.ops.Fancy (s)
   [relu] u = Relu (y)
   [join] z = Add (u, t)
}"""


def cut(start: str, end: str, target: Path) -> onnxsmith.Result | None:
    with onnxsmith.edit(from_text(TEXT), target, verify=False, save=Save()) as model:
        model.extract(start, end)
    return model.result


def test_the_type_follows_from_a_reader(tmp_path: Path) -> None:
    done = cut("x", "y", tmp_path / "part.onnx")
    assert done is not None
    assert done.model is not None
    (output,) = done.model.graph.outputs
    assert (str(output.type), list(output.shape or ())) == ("FLOAT", [1, 4])


def test_a_type_that_nothing_tells_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        cut("x", "s", tmp_path / "part.onnx")
    found = caught.value.problem
    assert found.id == "edit/untyped"
    assert "'s'" in found.what
    assert "com.acme.ops::Fancy" in found.why
    assert found.fix.endswith("--to z"), "t has no shape: an Add may broadcast it"
    assert not (tmp_path / "part.onnx").exists()
    with pytest.raises(OnnxsmithError) as caught:
        cut("t", "z", tmp_path / "part.onnx")
    assert caught.value.problem.fix.endswith("--from x")
