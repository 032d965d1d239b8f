"""Overlays of the reports that commands write: the right nodes have the right figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.quantisation import Precision, Quantisation
from onnxsmith.base.report.parts.target_checks import TargetChecks
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.scene import figure
from onnxsmith.viewer.view import view
from tests.precision.test_bisect import VARIANCE
from tests.precision.test_bisect import model as for_bisect
from tests.precision.test_quantize import classifier, samples
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

Shown = dict[str, dict[str, tuple[Any, str]]]


def laid(path: Path, report: Report) -> Shown:
    """Figure and text by title and node, of a report that went through a file, as `--json` and `--with` do."""
    file = path.with_suffix(".json")
    file.write_text(report.to_json(), encoding="utf-8")
    result = view(path, reports=[file])
    told = result.report.part(View)
    assert list(told.origins.values()) == ["of this model"]
    assert all(some == of for some, of in told.matched.values()), told.matched
    scene = scene_in(result.page)
    assert scene["warnings"] == []
    assert scene["notes"] == []
    names = scene["models"][0]["nodes"]["name"]
    return {
        layer["title"]: {
            names[node]: (layer["classes"][value] if layer["scale"] == "classes" else value, said)
            for node, value, said in zip(layer["nodes"], layer["figures"], layer["texts"], strict=True)
        }
        for layer in scene["overlays"]
    }


def saved(model: ir.Model, folder: Path) -> Path:
    save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_bisect(tmp_path: Path) -> None:
    path = saved(for_bisect(VARIANCE, opset=13), tmp_path)
    report = onnxsmith.bisect(path, tolerance=1e-2, runtime="reference").report
    found = laid(path, report)
    assert set(found["stays in float32"]) == {"square", "variance", "deviation"}
    assert found["stays in float32"]["square"][1].startswith("overflow: sq reaches ")
    kept = {one.name: one.own for one in report.part(Precision).kept}
    assert {name: value for name, (value, _) in found["error in float16"].items()} == {
        name: figure(own) for name, own in kept.items() if own is not None
    }
    assert found["error in float16"]["square"][0] == "inf"


def test_bisect_of_nodes_without_names(tmp_path: Path) -> None:
    text = (
        "(float[n] x) => (float[n] y) { s = Mul(x, x) t = Mul(s, s) u = Mul(t, t) v = Exp(u) w = Log(v) y = Sqrt(w) }"
    )
    path = saved(for_bisect(text), tmp_path)
    found = laid(path, onnxsmith.bisect(path, tolerance=1e-2, runtime="reference").report)
    assert {"-> v", "-> w"} <= set(found["stays in float32"])


@pytest.mark.parametrize(
    ("to", "budget"), [("int8", "15%"), ("int8-dynamic", "15%"), ("int4", "15%"), ("float16", "1%")]
)
def test_quantize(tmp_path: Path, to: str, budget: str) -> None:
    path = saved(classifier(), tmp_path)
    report = onnxsmith.quantize(
        path, to=to, data=samples(path, 60), metric="top1", budget=budget, measure_time=False
    ).report
    assert report.verdict is Verdict.DONE
    layers = {one.name: one for one in report.part(Quantisation).layers}
    assert {"layer_a", "layer_c", "layer_y"} <= set(layers)
    found = laid(path, report)
    assert found["precision"].keys() == layers.keys()
    for name, (value, _) in found["precision"].items():
        one = layers[name]
        assert value == (
            "stays as it was" if one.kept else "weights alone" if one.weights else report.part(Quantisation).to
        )
    damages = {name: one.damage for name, one in layers.items() if one.damage is not None}
    shown = {
        name: value for name, (value, _) in found.get(f"error in {report.part(Quantisation).to}, alone", {}).items()
    }
    assert shown == damages


def test_quantize_with_a_keep_list(tmp_path: Path) -> None:
    path = saved(classifier(), tmp_path)
    report = onnxsmith.quantize(
        path, to="int8", data=samples(path, 60), metric="top1", budget="15%", keep=["layer_c"], measure_time=False
    ).report
    found = laid(path, report)["precision"]
    assert found["layer_c"][0] == "stays as it was"
    assert found["layer_a"][0] == "int8"


def test_a_node_that_a_target_refuses(tmp_path: Path) -> None:
    text = "g (float[n,4,4] x) => (float[n] y) { [neg] a = Neg(x) [det] d = Det(a) [last] y = Relu(d) }"
    path = saved(from_text(HEAD + text), tmp_path)
    report = onnxsmith.check(path, ["openvino", "onnxruntime"]).report
    found = laid(path, report)
    (check, fine) = report.part(TargetChecks).checks
    assert set(found[check.title]) == {"det"}
    assert found[check.title]["det"][0] == "refused"
    assert check.nodes[0].why in found[check.title]["det"][1]
    assert {name: value for name, (value, _) in found[fine.title].items()} == dict.fromkeys(
        ["neg", "det", "last"], "agreed"
    )


def test_a_node_in_a_branch_that_a_target_refuses(tmp_path: Path) -> None:
    text = """g (bool c, float[2,4,4] x) => (float[2] y) {
        [cond] y = If (c) <
            then_branch = t () => (float[2] p) { [inner] p = Det(x) },
            else_branch = e () => (float[2] q) <int64[2] axes = {1, 2}> { [sum] q = ReduceSum<keepdims = 0>(x, axes) }
        >
    }"""
    path = saved(from_text(HEAD + text), tmp_path)
    report = onnxsmith.check(path, ["openvino"]).report
    (check,) = report.part(TargetChecks).checks
    assert [one.node for one in check.nodes] == ["cond/inner"]
    assert set(laid(path, report)[check.title]) == {"inner"}


def test_what_a_table_foresees(tmp_path: Path) -> None:
    text = "g (float[n,4,4] x) => (float[n] y) { [neg] a = Neg(x) [det] d = Det(a) [last] y = Relu(d) }"
    path = saved(from_text(HEAD + text), tmp_path)
    report = onnxsmith.check(path, ["qnn"]).report
    (check,) = report.part(TargetChecks).checks
    assert "det" in {one.node for one in check.nodes}
    found = laid(path, report)[check.title]
    assert {name: value for name, (value, _) in found.items()} == {one.node: one.stage.value for one in check.nodes}


def test_numbers_that_differ_on_a_target(tmp_path: Path) -> None:
    """Layer by layer, reports call a node by its result."""
    from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck

    text = "g (float[3] x) => (float[3] y) { [first] t = Neg(x) [second] y = Relu(t) }"
    path = saved(from_text(HEAD + text), tmp_path)
    node = NodeCheck("t", "Neg", Stage.RAN, "off")
    check = TargetCheck("some", "Some", "1", True, Stage.RAN, nodes=(node,))
    report = Report("check", Verdict.DIFFERENT, (TargetChecks((check,)),), models=onnxsmith.inspect(path).models)
    assert laid(path, report)["Some"]["first"] == ("ran", "ran: off")


def test_bench_and_compare(tmp_path: Path) -> None:
    text = "g (float[3,3] x) => (float[3,3] y) { [first] t = MatMul(x, x) [second] y = Tanh(t) }"
    path = saved(from_text(HEAD + text), tmp_path)
    compared = onnxsmith.compare(path, f"{path}@reference", per_layer=True).report
    assert set(laid(path, compared)["error including the error of the inputs"]) == {"first", "second"}
    timed = onnxsmith.bench(path, profile=True, seconds=0.2).report
    (title,) = laid(path, timed)
    assert set(laid(path, timed)[title]) == {"first", "second"}


def test_simplify_at_the_right_nodes(tmp_path: Path) -> None:
    text = "g (float[3] x) => (float[3] y) { [keep] t = Abs(x) [gone] u = Identity(t) [last] y = Relu(u) }"
    path = saved(from_text(HEAD + text), tmp_path)
    found = laid(path, onnxsmith.simplify(path, tmp_path / "s.onnx").report)
    assert "gone" in found["rewrites"]
    assert all(said for _, said in found["rewrites"].values())
