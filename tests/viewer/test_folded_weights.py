"""The names of torch parameters behind stored tensors that an exporter computed from them."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import WeightChanges
from onnxsmith.comparison.graphs.diff import diff
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

TEXT = (
    HEAD
    + "g (float[2] x) => (float[2] y) <float[2] val_64 = {1,2}, float[2] b = {1,2}> "
    + "{ t = Mul(x, val_64)\ny = Add(t, b) }"
)


def made(text: str, folded: str) -> ir.Model:
    model = from_text(text)
    value = model.graph.initializers["val_64"]
    value.metadata_props["pkg.onnxscript.optimizer.folded_from"] = folded
    return model


def aliases(model: ir.Model) -> dict[str, list[str]]:
    scene = scene_in(view(model).page)["models"][0]
    return {scene["values"]["name"][int(at)]: one["aliases"] for at, one in scene["constants"].items()}


def test_the_scene_names_the_parameter() -> None:
    assert aliases(made(TEXT, "['net.fc.weight']")) == {"val_64": ["net.fc.weight"], "b": []}
    assert aliases(made(TEXT, "no list")) == {"val_64": [], "b": []}


def test_diff_names_the_parameter() -> None:
    old, new = made(TEXT, "['net.fc.weight']"), made(TEXT.replace("{1,2}", "{1,3}", 1), "['net.fc.weight']")
    part = diff(old, new).report.part(WeightChanges)
    assert part.rows[0].aliases == ("net.fc.weight",)
    (table,) = part.blocks()
    assert table.rows[0][0] == "val_64 (net.fc.weight)"  # type: ignore[attr-defined]
