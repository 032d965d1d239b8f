"""What every form shares: what is refused, what is replaced, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxsmith
from onnxsmith.bundles import identifiers
from onnxsmith.bundles.forms.python import Python
from onnxsmith.problem import OnnxsmithError
from onnxsmith.report.base import Report
from onnxsmith.report.parts.bundle import Bundle, BundleCheck
from tests.bundles.models import HOSTILE, identity, linear, written


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

    def spoiled(self: Python, content: Any, folder: Path) -> list[BundleCheck]:
        file = folder / "golden" / "0_output_0.bin"
        numbers = np.frombuffer(file.read_bytes(), "<f4") + np.float32(1)
        file.write_bytes(numbers.tobytes())
        return replay(self, content, folder)

    replay = Python.replay
    monkeypatch.setattr(Python, "replay", spoiled)
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="python")
    assert result.report.verdict == "different"
    assert "output 'y' differs on input 1" in result.report.problems[0].where
    assert result.path is None
    assert not (tmp_path / "o").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["linear.onnx"]


def test_a_client_that_fails_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Python, content: Any, folder: Path) -> list[BundleCheck]:
        (folder / "model.py").write_text("raise SystemExit('no such opset')")
        return replay(self, content, folder)

    replay = Python.replay
    monkeypatch.setattr(Python, "replay", broken)
    assert refused(linear(tmp_path), tmp_path / "o", form="python")[0] == "bundle/client-failed"
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
