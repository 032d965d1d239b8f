"""What every form shares: what is refused, what is replaced, and what is said."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rich.console import Console

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.target_checks import Bundle, BundleCheck
from onnxsmith.cli.render.terminal import show
from onnxsmith.deployment.bundles import clients, identifiers
from onnxsmith.deployment.bundles.forms.python_runners import Python
from tests.deployment.bundles.models import HOSTILE, checks, identity, linear, manifest, written


def refused(*words: Any, **how: Any) -> tuple[str, str]:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(*words, **how)
    return caught.value.problem.id, caught.value.problem.fix


def test_an_unknown_form_names_the_nearest(tmp_path: Path) -> None:
    assert refused(linear(tmp_path), tmp_path / "o", form="pyton") == ("bundle/unknown-form", "--for python")
    assert not (tmp_path / "o").exists()


def test_an_unknown_task_names_the_nearest(tmp_path: Path) -> None:
    found = refused(linear(tmp_path), tmp_path / "o", form="python", task="tensor")
    assert found == ("bundle/unknown-task", "--task tensors")


def test_a_folder_that_is_no_bundle_stays(tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "mine.txt").write_text("mine")
    assert refused(linear(tmp_path), tmp_path / "o", form="python", force=True)[0] == "bundle/folder"
    assert (tmp_path / "o" / "mine.txt").read_text() == "mine"


def test_an_older_bundle_is_replaced_unless_it_was_changed(tmp_path: Path) -> None:
    model = linear(tmp_path)
    out = tmp_path / "o"
    assert onnxsmith.bundle(model, out, form="python").ok
    assert onnxsmith.bundle(model, out, form="python", seed=1).ok
    (out / "model.py").write_text("# mine")
    assert refused(model, out, form="python")[0] == "bundle/changed"
    assert onnxsmith.bundle(model, out, form="python", force=True).ok
    assert (out / "model.py").read_text() != "# mine"
    (out / "more.txt").write_text("")
    assert refused(model, out, form="python")[0] == "bundle/changed"


def test_the_source_inside_the_target_stays(tmp_path: Path) -> None:
    out = tmp_path / "o"
    assert onnxsmith.bundle(linear(tmp_path), out, form="python").ok
    assert refused(out / "model" / "model.onnx", out, form="python", force=True)[0] == "save/needed"


@pytest.mark.parametrize("text", ["batch", "batch=1:2", "batch=0:1:2", "batch=4:2:8", "n=1:2:3", "=1:2:3"])
def test_wrong_ranges(tmp_path: Path, text: str) -> None:
    assert refused(linear(tmp_path), tmp_path / "o", form="python", dim_ranges=(text,))[0] == "bundle/dim-range"


def test_no_outputs(tmp_path: Path) -> None:
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [port], [])
    assert refused(written(tmp_path, graph), tmp_path / "o", form="python")[0] == "bundle/no-outputs"


def test_random_outputs_are_refused(tmp_path: Path) -> None:
    port = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("RandomNormal", [], ["y"], shape=[3])], "g", [], [port])
    assert refused(written(tmp_path, graph), tmp_path / "o", form="python")[0] == "bundle/random"


def test_external_data_outside_of_the_folder(tmp_path: Path) -> None:
    model = onnx.load(linear(tmp_path))
    tensor = model.graph.initializer[0]
    raw = np.zeros((3, 2), np.float32).tobytes()
    (tmp_path / "secret.bin").write_bytes(raw)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret.bin")
    (tmp_path / "inner").mkdir()
    path = tmp_path / "inner" / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert refused(path, tmp_path / "o", form="python")[0].startswith("model/")


def test_a_difference_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay sees other golden numbers than were recorded: a client that computes something else."""

    def spoiled(self: Python, content: Any, folder: Path) -> None:
        write(self, content, folder)
        file = folder / "golden" / "0_output_0.bin"
        numbers = np.frombuffer(file.read_bytes(), "<f4") + np.float32(1)
        file.write_bytes(numbers.tobytes())

    write = Python.write
    monkeypatch.setattr(Python, "write", spoiled)
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python")
    assert result.report.verdict == "different"
    assert "output 'y' differs on input 1" in result.report.problems[0].where
    assert result.path is None
    assert not (tmp_path / "o").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["linear.onnx"]


def test_a_client_that_fails_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Python, content: Any, folder: Path) -> list[BundleCheck]:
        file = folder / "verify.py"
        file.write_text("raise RuntimeError('no such provider')")
        return replay(self, content, folder)

    replay = Python.replay
    monkeypatch.setattr(Python, "replay", broken)
    found = refused(linear(tmp_path), tmp_path / "o", form="python")
    assert found[0] == "bundle/client-failed"
    assert "opset" not in found[1]
    assert not (tmp_path / "o").exists()


def test_the_licence(tmp_path: Path) -> None:
    model = onnx.load(linear(tmp_path))
    model.metadata_props.add(key="license", value="CC-BY-4.0")
    onnx.save(model, tmp_path / "m.onnx")
    result = onnxsmith.bundle(tmp_path / "m.onnx", tmp_path / "o", form="python")
    assert "no licence given" in result.report.headline
    assert result.report.part(Bundle).licence == "no licence given; the model's metadata says license: CC-BY-4.0"
    assert "'CC-BY-4.0'" in (tmp_path / "o" / "NOTICE").read_text()
    (tmp_path / "L").write_text("MIT")
    result = onnxsmith.bundle(tmp_path / "m.onnx", tmp_path / "p", form="python", licence=tmp_path / "L")
    assert (tmp_path / "p" / "LICENSE").read_text() == "MIT"
    assert "no licence given" not in result.report.headline
    assert refused(tmp_path / "m.onnx", tmp_path / "q", form="python", licence="no")[0] == "bundle/licence"


def test_the_interface_is_a_schema(tmp_path: Path) -> None:
    model = identity(tmp_path, ("x/y", "out", TensorProto.INT64, ["batch", 3, "2*batch", None]))
    assert onnxsmith.bundle(model, tmp_path / "o", form="python", dim_ranges=("batch=1:2:8",)).ok
    held = json.loads((tmp_path / "o" / "interface.json").read_text())
    port = held["properties"]["inputs"]["properties"]["x/y"]
    batch, three, double, free = port["properties"]["shape"]["prefixItems"]
    assert batch == {"$ref": "#/$defs/dim:batch"}
    assert held["$defs"]["dim:batch"] == {"type": "integer", "minimum": 1, "maximum": 8, "x-usual": 2}
    assert (three, double["x-expression"], free["minimum"]) == ({"const": 3}, "2*batch", 0)
    assert port["properties"]["dtype"] == {"const": "int64"}


def test_given_inputs_are_recorded(tmp_path: Path) -> None:
    given = {"x": np.full((5, 3), 2, np.float32)}
    assert onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python", inputs=given).ok
    first = np.frombuffer((tmp_path / "o" / "golden" / "0_input_0.bin").read_bytes(), "<f4")
    assert first.tolist() == [2.0] * 15


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("RuntimeError: No Op registered for Foo with domain_version of 99", "onnxsmith opset"),
        ("ai.onnx opset 27 is under development, and support is limited", "onnxsmith opset"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 916. MiB", "--input inputs.npz"),
        ("model.InputError: 'N' is 3 in input 'x'; declared is 4 to 8", "onnxsmith explain"),
        ("FileNotFoundError: golden/0_input_0.bin", "onnxsmith explain"),
        ("", "onnxsmith explain"),
    ],
)
def test_the_remedy_follows_from_the_message(said: str, fix: str) -> None:
    error = clients.failed("runner", "python", clients.Finished(1, "", said))
    assert isinstance(error, OnnxsmithError)
    assert fix in error.problem.fix


def test_a_client_that_took_too_long_gets_smaller_inputs() -> None:
    error = clients.failed("runner", "python", clients.Finished(-1, "", "it was stopped after 600 s", late=True))
    assert isinstance(error, OnnxsmithError)
    assert "ONNXSMITH_TIME_LIMIT" in error.problem.fix


@pytest.mark.parametrize(("option", "form"), [("onnxruntime", "cpp"), ("node_modules", "web")])
def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path, option: str, form: str) -> None:
    for folder in (tmp_path / "no", linear(tmp_path)):
        found = refused(linear(tmp_path), tmp_path / "o", form=form, clients={option: folder})
        assert found[0] == "bundle/no-client"
    assert not (tmp_path / "o").exists()


def test_a_folder_that_the_form_does_not_use_is_said(tmp_path: Path) -> None:
    how: dict[str, Any] = {"clients": {"node_modules": tmp_path, "onnxruntime": tmp_path}}
    report = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python", **how).report
    notes = report.part(Bundle).notes
    assert {f"--{name} is not used by the form python" for name in ("node-modules", "onnxruntime-root")} <= set(notes)


def test_names_that_change_are_said(tmp_path: Path) -> None:
    path = linear(tmp_path).rename(tmp_path / "my net (1).onnx")
    report = onnxsmith.bundle(path, tmp_path / "o", form="python").report
    assert "the bundle of 'my net (1)' is called 'my_net_1'" in report.part(Bundle).notes
    model = identity(tmp_path, ("class", "out", TensorProto.FLOAT, ["n"]))
    report = onnxsmith.bundle(model, tmp_path / "p", form="python").report
    assert "in generated code, 'class' is class_" in report.part(Bundle).notes
    report = onnxsmith.bundle(linear(tmp_path), tmp_path / "q", form="python").report
    assert not [note for note in report.part(Bundle).notes if "is called" in note or "generated code" in note]


@pytest.mark.parametrize("name", ["a b", "../x", "", ".x", "a/b", "é", "-x", "x\n"])
def test_names_that_no_folder_should_have(tmp_path: Path, name: str) -> None:
    assert refused(linear(tmp_path), tmp_path / "o", form="python", name=name)[0] == "bundle/name"


def test_values_that_are_drawn_are_not_stored(tmp_path: Path) -> None:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y", "z")]
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("RandomNormalLike", ["x"], ["z"])]
    path = written(tmp_path, helper.make_graph(nodes, "g", ports[:1], ports[1:]))
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        report = onnxsmith.bundle(path, folder, form="python").report
        assert checks(report)["python runner"].state == "equal"
    drawn = manifest(folders[0])["cases"][0]["outputs"][1]
    assert (drawn["name"], drawn["random"], drawn["file"]) == ("z", True, None)
    files = sorted(file.relative_to(folders[0]) for file in folders[0].rglob("*") if file.is_file())
    for file in files:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes(), file


def test_a_report_is_read_back(tmp_path: Path) -> None:
    report = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python").report
    assert Report.from_json(report.to_json()) == report
    assert "python runner: ran, equal to 1e-5" in report.headline


def test_identifiers_are_distinct_and_no_words_of_a_language() -> None:
    found = identifiers.identifiers(["class", "class_", "CLASS_", "a.b", "a:b", "1", "", "__x__", *HOSTILE[6:]])
    assert len({one.lower() for one in found.values()}) == len(found)
    assert not identifiers.RESERVED & set(found.values())
    assert all(one.isidentifier() and "__" not in one for one in found.values())


def test_literals_mean_the_text() -> None:
    import ast

    for name in [*HOSTILE, "\x00\x7f\u2028"]:
        assert ast.literal_eval(identifiers.python(name)) == name
        assert json.loads(identifiers.javascript(name)) == name
        plain = ast.literal_eval("b" + identifiers.c(name)).decode()
        assert plain == name


def test_why_parts_were_not_run_is_said_once(tmp_path: Path) -> None:
    report = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="tensorrt").report
    why = "building and running a plan needs an NVIDIA GPU and TensorRT"
    assert f"; trtexec line, TensorRT runners: not run: {why}; " in report.headline
    with io.StringIO() as printed:
        show(report, Console(file=printed, width=400))
        assert printed.getvalue().count(why) == 1
