"""The Python runner: what it takes and refuses, its types, and its replay without anything but numpy and
onnxruntime."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.bundles import clients
from tests.deployment.bundles.models import checks, classifier, hostile, identity, linear, manifest


def bundled(model: Any, folder: Path, **how: Any) -> Path:
    result = onnxsmith.bundle(model, folder / "out", form="python", **how)
    assert result.ok, result.report.problems
    assert checks(result.report)["python runner"].state == "equal"
    assert result.path is not None
    return result.path


def verified(folder: Path) -> tuple[int, dict[str, Any]]:
    """What verify.py says in a fresh interpreter with numpy and onnxruntime only."""
    with clients.bare_python("numpy", "onnxruntime") as (_, words):
        done = clients.run([*words, folder / "verify.py", "--json"], folder=folder)
    assert done.output, done.errors
    return done.status, json.loads(done.output.splitlines()[-1])


def runner(folder: Path) -> Any:
    """The module model.py of the bundle."""
    spec = importlib.util.spec_from_file_location(f"model_of_{folder.parent.name}", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_golden_data_has_two_sizes(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path)
    sizes = [case["sizes"]["batch"] for case in manifest(out)["cases"]]
    assert len(set(sizes)) == 2


def test_a_changed_weight_fails_with_the_output(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path)
    model = onnx.load(out / "model" / "model.onnx")
    (weight,) = model.graph.initializer
    array = numpy_helper.to_array(weight).copy()
    array[0, 0] += 0.01
    weight.CopyFrom(numpy_helper.from_array(array, "w"))
    onnx.save(model, out / "model" / "model.onnx")
    status, said = verified(out)
    assert status == 1
    assert said["wrong"][0] == "'model/model.onnx' is not the file that was verified"
    assert "output 'y' differs on input 1" in said["wrong"][1]


def test_a_changed_golden_number_fails_with_the_output(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path)
    file = out / "golden" / "1_output_0.bin"
    numbers = np.frombuffer(file.read_bytes(), "<f4").copy()
    numbers[numbers.argmax()] *= 1.001
    file.write_bytes(numbers.tobytes())
    status, said = verified(out)
    assert status == 1
    assert "output 'y' differs on input 2" in said["wrong"][1]


def test_nothing_else_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "try.py").write_text("import numpy, onnxruntime\ntry:\n import onnx\nexcept ImportError:\n print(1)\n")
    with clients.bare_python("numpy", "onnxruntime") as (_, words):
        done = clients.run([*words, tmp_path / "try.py"], folder=tmp_path)
    assert (done.status, done.output.strip()) == (0, "1"), done.errors


def test_the_code_passes_strict_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    out = bundled(hostile(tmp_path), tmp_path)
    words = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "model.py", "golden.py", "verify.py"]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False, env=_without_path())
    assert done.returncode == 0, done.stdout


def _without_path() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


def test_hostile_names_run(tmp_path: Path) -> None:
    out = bundled(hostile(tmp_path), tmp_path)
    module = runner(out)
    case = manifest(out)["cases"][0]
    names = {one["name"] for one in case["inputs"]}
    assert names == {port.name for port in module.INPUTS}
    identifiers = [port.identifier for port in (*module.INPUTS, *module.OUTPUTS)]
    assert all(one.isidentifier() and one.isascii() for one in identifiers)
    given = {port.identifier: np.ones([2, 2], np.float32) for port in module.INPUTS if port.dtype == "float32"}
    outputs = module.Model()(**given, self_=np.arange(3))
    assert outputs.return_.tolist() == [0, 1, 2]
    assert outputs.a_b_out.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": [1.0]}, "input 'x' is a list, not a numpy array of float32"),
        ({"x": np.zeros((1, 3))}, "input 'x' has dtype float64, not float32"),
        ({"x": np.zeros(3, np.float32)}, r"input 'x' has shape \[3\], not \[batch, 3\]"),
        ({"x": np.zeros((1, 4), np.float32)}, "axis 1 is 3"),
        ({"x": np.zeros((9, 3), np.float32)}, "'batch' is 9 in input 'x'; declared is 1 to 8"),
        ({"x": np.zeros((1, 3), np.float32), "z": np.zeros(1)}, "the model has no input 'z'; it has 'x'"),
    ],
)
def test_a_wrong_input_is_named(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    out = bundled(linear(tmp_path), tmp_path, dim_ranges=("batch=1:2:8",))
    module = runner(out)
    with pytest.raises(module.InputError, match=message):
        module.Model().run(given)


def test_a_provider_that_is_not_there(tmp_path: Path) -> None:
    module = runner(bundled(linear(tmp_path), tmp_path))
    with pytest.raises(ValueError, match="lacks NoProvider; it has"):
        module.Model(providers=["NoProvider"])


def test_declared_ranges_are_the_golden_sizes(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path, dim_ranges={"batch": (1, 4, 16)})
    assert [case["sizes"]["batch"] for case in manifest(out)["cases"]] == [4, 1, 16]


@pytest.mark.parametrize(
    "dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING,
              TensorProto.DOUBLE, TensorProto.UINT8]
)  # fmt: skip
def test_dtypes(tmp_path: Path, dtype: int) -> None:
    bundled(identity(tmp_path, ("x", "y", dtype, ["n", 2])), tmp_path)


@pytest.mark.parametrize("dtype", [TensorProto.INT4, TensorProto.FLOAT8E4M3FN])
def test_dtypes_that_numpy_lacks_are_refused(tmp_path: Path, dtype: int) -> None:
    model = identity(tmp_path, ("x", "y", dtype, ["n", 2]))
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(onnx_at(model, 21), tmp_path / "out", form="python")
    assert caught.value.problem.id == "bundle/not-for-form"
    assert not (tmp_path / "out").exists()


def onnx_at(path: Path, opset: int) -> onnx.ModelProto:
    model = onnx.load(path)
    model.opset_import[0].version, model.ir_version = opset, 10
    return model


def test_a_scalar_and_a_model_without_inputs(tmp_path: Path) -> None:
    value = numpy_helper.from_array(np.float32(2.5), "c")
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], value=value)],
        "constant",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    out = bundled(model, tmp_path)
    assert runner(out).Model()().y == 2.5


def test_a_sequence(tmp_path: Path) -> None:
    ports = [
        helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 2]),
    ]
    graph = helper.make_graph([helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    bundled(model, tmp_path)


def test_maps(tmp_path: Path) -> None:
    """What scikit-learn's classifiers give, and take: lists of maps."""
    floats = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    of_text = helper.make_map_type_proto(TensorProto.STRING, floats)
    nodes = [
        helper.make_node("DictVectorizer", ["m"], ["x"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]),
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "p"],
            domain="ai.onnx.ml",
            coefficients=[1.0, -1.0, 0.5, -0.5],
            intercepts=[0.0, 0.0],
            classlabels_strings=["yes", "no"],
            post_transform="SOFTMAX",
        ),
        helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["yes", "no"]),
    ]
    graph = helper.make_graph(
        nodes,
        "maps",
        [helper.make_value_info("m", of_text)],
        [
            helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]),
            helper.make_value_info("z", helper.make_sequence_type_proto(of_text)),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    out = bundled(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path)
    assert set(manifest(out)["cases"][0]["outputs"][1]["items"][0]["pairs"][0]) & {"yes", "no"}
    found = runner(out).Model()(m={"a": 1.0, "b": 0.0})
    assert set(found.z[0]) == {"yes", "no"}


def test_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert onnxsmith.bundle(str(linear(tmp_path).name), "out", form="python").ok


def test_external_data_and_the_same_bytes(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    out = bundled(path, tmp_path)
    assert (out / "model" / "weights.bin").read_bytes() == (tmp_path / "weights.bin").read_bytes()
    again = onnxsmith.bundle(path, tmp_path / "again", form="python").path
    assert again is not None
    files = sorted(file.relative_to(out) for file in out.rglob("*") if file.is_file())
    assert files == sorted(file.relative_to(again) for file in again.rglob("*") if file.is_file())
    for file in files:
        assert (out / file).read_bytes() == (again / file).read_bytes(), file


def test_a_data_file_that_would_overwrite_the_model(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="model.onnx", size_threshold=0)
    out = bundled(path, tmp_path)
    assert onnx.load(out / "model" / "model.onnx").graph.node


def test_an_output_that_is_listed_twice_is_one_field(tmp_path: Path) -> None:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y", "z")]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    graph = helper.make_graph(nodes, "g", ports[:1], [ports[1], ports[2], ports[1]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), tmp_path / "m.onnx")
    out = bundled(tmp_path / "m.onnx", tmp_path)
    assert verified(out)[0] == 0
    assert [field.name for field in dataclasses.fields(runner(out).Outputs)] == ["y", "z"]
