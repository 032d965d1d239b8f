"""Reports over the nodes: what each part gives, by the commands that write it, and reports that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.layers import Layer, Layers
from onnxsmith.base.report.parts.measurements import KernelTime, Profile
from onnxsmith.base.report.parts.quantisation import KeptNode, LayerDamage, Precision, Quantisation
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck, TargetChecks
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.inspection.inspect import inspect
from onnxsmith.viewer.overlays.base import Overlaying
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD, chain, in_module
from tests.viewer.test_view import refused, scene_in

TEXT = HEAD + (
    "g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> {\n"
    "[product] t = MatMul(x, w)\n[root] u = Sqrt(t)\n[act] y = Relu(u) }"
)
NODES = ["product", "root", "act"]


def overlays(*reports: Report | str | Path, text: str = TEXT) -> dict[str, dict[str, tuple[Any, str]]]:
    """Figure and text by title and name of the node; a class by its name."""
    scene = scene_in(view(from_text(text), reports=reports).page)
    names = scene["models"][0]["nodes"]["name"]
    found: dict[str, dict[str, tuple[Any, str]]] = {}
    for layer in scene["overlays"]:
        rows = zip(layer["nodes"], layer["figures"], layer["texts"], strict=True)
        found[layer["title"]] = {
            names[node]: (layer["classes"][value] if layer["scale"] == "classes" else value, said)
            for node, value, said in rows
        }
    return found


def report(part: Part) -> Report:
    return Report("made", Verdict.DONE, (part,))


def test_values_of_a_run() -> None:
    x = np.array([[1, 2, 3], [-1, -2, -3]], np.float32)
    found = overlays(onnxsmith.dump(from_text(TEXT), inputs={"x": x}, runtime="reference").report)
    assert found["largest magnitude"]["product"][0] == 28
    assert {name: value for name, (value, _) in found["NaN and infinity"].items()} == {
        "product": "finite", "root": "NaN", "act": "NaN",
    }  # fmt: skip
    assert "2 NaN" in found["NaN and infinity"]["root"][1]


def test_values_that_are_not_finite_are_the_worst_and_come_first() -> None:
    x = np.array([[1, 2, 3], [-1, -2, -3]], np.float32)
    run = onnxsmith.dump(from_text(TEXT), inputs={"x": x}, runtime="reference").report
    found = overlays(run)
    assert next(iter(found)) == "NaN and infinity", "the page starts with the first layer"
    assert {name: value for name, (value, _) in found["largest magnitude"].items()} == {
        "product": 28, "root": "nan", "act": "nan",
    }  # fmt: skip
    every = onnxsmith.dump(from_text(TEXT), inputs={"x": -x[:1]}, runtime="reference").report
    assert overlays(every)["largest magnitude"]["root"] == ("nan", "u: no finite value, 2 NaN")
    fine = onnxsmith.dump(from_text(TEXT), inputs={"x": x[:1]}, runtime="reference").report
    assert next(iter(overlays(fine))) == "largest magnitude"


def test_infinity_is_a_magnitude() -> None:
    text = HEAD + "g (float[2] x) => (float[2] y) { [inverse] t = Reciprocal(x)\n[last] y = Neg(t) }"
    run = onnxsmith.dump(from_text(text), inputs={"x": np.array([0, 2], np.float32)}, runtime="reference").report
    assert overlays(run, text=text)["largest magnitude"]["inverse"][0] == "inf"


def errors(name: str, step: str, inherited: float, own: float | None, verdict: str) -> Layer:
    place = ("Op", (step,), "", "", "float32", (2, 2))
    return Layer(name, name, "name", *place, inherited, 0.0, own, 1e-6, None, verdict)


def test_errors_by_layer() -> None:
    layers = (
        errors("t", "product", 1e-7, 1e-7, "equal"),
        errors("u", "root", float("nan"), None, "own error"),
    )
    part = Layers("a", "b", "x", layers, ("u",), 1.0, {"name": 2}, (), ())
    found = overlays(report(part))
    assert found["error including the error of the inputs"]["product"][0] == 1e-7
    assert found["error including the error of the inputs"]["root"][0] == "nan"
    assert list(found["error of the node itself"]) == ["product"]
    assert found["verdict of the comparison"]["root"][0] == "own error"


def test_time_of_kernels() -> None:
    kernels = (
        KernelTime("k0", "MatMul", "CPU", ("MatMul",), ("product",), "", 3e-6, True),
        KernelTime("k1", "Fused", "CPU", ("Sqrt", "Relu"), ("root", "act"), "", 4e-6, True),
        KernelTime("k2", "Relu", "CPU", ("Relu",), ("act",), "", 1e-6, True),
        KernelTime("k3", "Copy", "CPU", (), (), "", 9e-6, False),
    )
    found = overlays(report(Profile("m.onnx", 10, 1e-5, "operator", (), (), kernels, "")))["time on m.onnx"]
    assert {name: value for name, (value, _) in found.items()} == pytest.approx(
        {"product": 3e-6, "root": 2e-6, "act": 3e-6}
    )
    assert found["act"][1] == "2.00 us, its part of 4.00 us in k1 (Fused), which computes 2 nodes; 1.00 us in k2 (Relu)"


def times(*kernels: KernelTime) -> dict[str, tuple[Any, str]]:
    return overlays(report(Profile("m.onnx", 10, 1e-5, "operator", (), (), kernels, "")))["time on m.onnx"]


def test_a_fused_kernel_has_its_time_at_the_node_of_its_operator() -> None:
    """Reports list a node that several kernels lead to in each of them: it must not get a part of each time."""
    found = times(
        KernelTime("act", "FusedMatMul", "CPU", ("MatMul", "Sqrt", "Relu"), tuple(NODES), "", 8e-6, True),
        KernelTime("root", "Sqrt", "CPU", ("MatMul", "Sqrt"), ("product", "root"), "", 2e-6, True),
    )
    assert {name: value for name, (value, _) in found.items()} == {"product": 8e-6, "root": 2e-6, "act": 0}
    assert (
        found["act"][1] == "this node is computed by the kernel act (FusedMatMul), whose 8.00 us are shown at product"
    )
    assert found["product"][1] == (
        "8.00 us in act (FusedMatMul), fused with root, act; "
        "this node is computed by the kernel root (Sqrt), whose 2.00 us are shown at root"
    )
    assert found["root"][1].startswith(
        "2.00 us in root (Sqrt), fused with product; this node is computed by the kernel act"
    )


def test_nodes_of_a_profile_are_counted_once() -> None:
    """A node that several kernels compute is one node of the model."""
    kernels = [KernelTime(f"k{at}", "Relu", "CPU", ("Relu",), ("act",), "", 1e-6, True) for at in range(5)]
    profile = Profile("m.onnx", 10, 1e-5, "operator", (), (), tuple(kernels), "")
    result = view(from_text(TEXT), reports=[report(profile)])
    assert list(result.report.part(View).matched.values()) == [(1, 1)]


def test_a_kernel_of_no_operator_of_the_file_has_its_time_at_its_last_node() -> None:
    found = times(KernelTime("root", "Reorder", "CPU", ("MatMul", "Sqrt"), ("product", "root"), "", 4e-6, True))
    assert {name: value for name, (value, _) in found.items()} == {"product": 0, "root": 4e-6}


def test_costs_by_module() -> None:
    ops = [f"{op}@net.{module}" for module in "ab" for op in ("Relu", "Abs", "Neg")]
    model = chain(ops)
    model.graph.inputs[0].shape = type(model.graph.inputs[0].shape)(["N"])  # type: ignore[misc]
    scene = scene_in(view(model, reports=[inspect(model, costs=True, sizes={"N": 10})]).page)
    (layer,) = scene["overlays"]
    assert layer["title"] == "activations"
    assert layer["figures"] == [40.0] * 7, "each result has 10 float32; the last node has no module"
    assert layer["unit"] == "bytes"


def test_costs_stand_at_the_nodes_that_have_them() -> None:
    """A module's sum is not spread over its nodes: a Transpose has no multiply-adds, a Sqrt no weights."""
    text = HEAD + (
        "g (float[4,3] x) => (float[4,2] y) <float[2,3] w = {1,2,3,4,5,6}> {\n"
        "[turn] t = Transpose <perm = [1, 0]>(w)\n[product] u = MatMul(x, t)\n[root] y = Sqrt(u) }"
    )
    model = from_text(text)
    for node in model.graph:
        in_module(node, "net.fc")
    report = inspect(model, costs=True)
    scene = scene_in(view(model, reports=[report]).page)
    names = scene["models"][0]["nodes"]["name"]
    found = {
        layer["title"]: {names[node]: value for node, value in zip(layer["nodes"], layer["figures"], strict=True)}
        for layer in scene["overlays"]
    }
    assert found == {
        "multiply-adds": {"product": 24}, "activations": {"turn": 24, "product": 32, "root": 32},
        "weights": {"turn": 24},
    }  # fmt: skip


def test_costs_of_a_module_that_the_model_does_not_have_are_no_figures_of_nodes() -> None:
    wide, narrow = chain(["Relu@net.a"]), chain(["Relu@net.a"])
    for model, size in ((wide, 10), (narrow, 5)):
        model.graph.inputs[0].shape = ir.Shape([size])
    scene = scene_in(view(narrow, reports=[inspect(wide, costs=True)]).page)
    assert scene["overlays"] == []


def test_costs_by_operator() -> None:
    model = from_text(HEAD + "g (float[5] x) => (float[5] y) { t = Relu(x)\ny = Abs(t) }")
    (layer,) = scene_in(view(model, reports=[inspect(model, costs=True)]).page)["overlays"]
    assert layer["figures"] == [20, 20]


def test_nodes_that_stay_wide() -> None:
    kept = KeptNode("root", "Sqrt", "", "", "the tolerance", 0.25, "-4 to 5", "")
    part = Precision("float16", 3, 3, (kept,), {}, "", "", "", 0, 0, 0, 0)
    found = overlays(report(part))
    assert found["stays in float32"] == {"root": ("stays in float32", "the tolerance; range -4 to 5")}
    assert found["error in float16"]["root"][0] == 0.25


def test_layers_that_became_narrow() -> None:
    layers = (LayerDamage("product", "MatMul", 24, 0.01, ""), LayerDamage("root", "Sqrt", 0, None, "no kernel"))
    part = Quantisation("int8", "dynamic", layers, "mse", "lower", 0.0, 0.1, 0.2, "", 1, 1, False, True, 0, 10, 5, 1)
    found = overlays(report(part))
    assert {name: value for name, (value, _) in found["precision"].items()} == {
        "product": "int8", "root": "stays as it was",
    }  # fmt: skip
    assert found["error in int8, alone"]["product"][0] == 0.01


def test_targets() -> None:
    node = NodeCheck("root", "Sqrt", Stage.REFUSED, "no kernel", rewrite="another root")
    checks = (
        TargetCheck("some", "Some Target", "1", True, Stage.REFUSED, nodes=(node,)),
        TargetCheck("other", "Other", "1", True, Stage.AGREED),
    )
    assert overlays(report(TargetChecks(checks))) == {
        "Some Target": {"root": ("refused", "refused: no kernel; what helps: another root")},
        "Other": dict.fromkeys(NODES, ("agreed", "agreed")),
    }


def test_rewrites(tmp_path: Path) -> None:
    text = HEAD + "g (float[N] x) => (float[N] y) { [a] t = Identity(x)\n[b] y = Relu(t) }"
    done = onnxsmith.simplify(from_text(text), tmp_path / "s.onnx", verify=False).report
    found = overlays(done, text=text)
    assert "a" in found["rewrites"]


def test_all_nodes_of_a_merge_are_marked(tmp_path: Path) -> None:
    """Three products of one tensor become one: all of them are marked before, and what they became after."""
    weights = ", ".join(f"float[2,2] w{n} = {{1,2,3,{n}}}" for n in range(3))
    lines = "\n".join(f"[m{n}] t{n} = MatMul(x, w{n})\n[a{n}] y{n} = Add(t{n}, x)" for n in range(3))
    text = HEAD + f"g (float[2,2] x) => (float[2,2] y0, float[2,2] y1, float[2,2] y2) <{weights}> {{ {lines} }}"
    done = onnxsmith.simplify(from_text(text), tmp_path / "s.onnx", verify=False)
    (entry, *_) = [one for one in done.report.part(Simplification).fired if one.rule == "fuse/parallel-matmul"]
    assert len(entry.gone_names) == len(entry.gone)
    assert len(entry.made_names) == len(entry.made)
    assert {"m0", "m1", "m2"} <= set(overlays(done.report, text=text)["rewrites"])
    scene = scene_in(view(tmp_path / "s.onnx", reports=[done.report]).page)
    (marked,) = [layer for layer in scene["overlays"] if layer["title"] == "rewrites"]
    ops = {scene["models"][0]["ops"][scene["models"][0]["nodes"]["op"][node]]["type"] for node in marked["nodes"]}
    assert "MatMul" in ops
    ((_, asked),) = view(from_text(text), reports=[done.report]).report.part(View).matched.values()
    assert asked == len(done.report.part(Simplification).fired), "names that a model cannot have do not count"


def test_the_captured_program() -> None:
    model = from_text(HEAD + "g (float[N] x) => (float[N] y) { [relu] t = Relu(x)\n[abs] y = Abs(t) }")
    for node in model.graph:
        node.metadata_props["pkg.torch.onnx.name_scopes"] = repr(["", f"op_{node.name}"])
        trace = 'File "net.py", line 7, in forward\n    return x.relu().abs()'
        node.metadata_props["pkg.torch.onnx.stack_trace"] = trace
    scene = scene_in(view(model).page)
    assert scene["program"]["from"] == "the metadata of the nodes"
    assert [(line["name"], line["nodes"]) for line in scene["program"]["lines"]] == [("op_relu", [0]), ("op_abs", [1])]
    assert scene["models"][0]["sources"][scene["program"]["lines"][0]["source"]]["line"] == 7
    given = inspect(model, program=True)
    assert scene_in(view(model, reports=[given]).page)["program"]["from"] == "the model, in the report of inspect"


def test_a_report_of_another_model() -> None:
    found = onnxsmith.dump(chain(["Relu", "Abs"]), runtime="reference").report
    assert refused(from_text(TEXT.replace("y", "z")), reports=[found]) == "view/other-model"


def test_a_report_that_fits_in_part_is_noted() -> None:
    longer = chain(["Relu", "Abs", "Neg", "Sin", "Cos"])
    result = view(chain(["Relu"]), reports=[onnxsmith.dump(longer, runtime="reference").report])
    assert result.report.part(View).matched == {"Values of the report of dump": (2, 6)}
    assert any("may be about another version" in note for note in result.report.notes)


def test_a_report_is_laid_over_the_model_that_it_is_of() -> None:
    found = onnxsmith.dump(chain(["Relu", "Abs", "Neg"]), runtime="reference").report
    scene = scene_in(view(from_text(TEXT), chain(["Relu", "Abs", "Neg"]), reports=[found]).page)
    assert {layer["model"] for layer in scene["overlays"]} == {1}


def test_reports_that_are_refused(tmp_path: Path) -> None:
    assert refused(from_text(TEXT), reports=[tmp_path / "none.json"]) == "view/report"
    (tmp_path / "no.json").write_text("{}")
    assert refused(from_text(TEXT), reports=[tmp_path / "no.json"]) == "report/unreadable"
    failed = Report("bench", Verdict.FAILED, problems=(Problem("bench/no", "no time"),))
    with pytest.raises(OnnxsmithError) as caught:
        view(from_text(TEXT), reports=[failed])
    assert caught.value.problem.why == "the command failed: bench/no: no time"
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert refused(from_text(TEXT), reports=[tmp_path / "binary.json"]) == "report/unreadable"
    assert (
        refused(from_text(TEXT), reports=[onnxsmith.diff(from_text(TEXT), from_text(TEXT)).report]) == "view/no-figures"
    )


def test_a_report_in_a_file(tmp_path: Path) -> None:
    save(from_text(TEXT), tmp_path / "m.onnx")
    done = onnxsmith.dump(tmp_path / "m.onnx", runtime="reference").report
    (tmp_path / "r.json").write_text(done.to_json(), encoding="utf-8")
    assert set(overlays(tmp_path / "r.json")["largest magnitude"]) <= set(NODES)


def test_every_overlay_is_called_as_a_part() -> None:
    parts = {kind.kind() for kind in rooms.classes("onnxsmith.base.report.parts", Part).values()}
    names = {name.replace("-", "_") for name in rooms.classes("onnxsmith.viewer.overlays", Overlaying)}
    assert names <= parts
