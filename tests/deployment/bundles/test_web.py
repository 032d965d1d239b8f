"""The web form: run by Node.js and, where it is installed, by Chromium; processing equal to Python's."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.bundles import clients, nodejs
from tests.deployment.bundles.models import checks, classifier, hostile, identity, linear, upscaler, written

ROOT = Path(__file__).parents[3]
MODULES = Path(__file__).parent / "clients" / "node_modules"
needs_node = pytest.mark.skipif(nodejs.node() is None, reason="no Node.js 18 or later is installed")
needs_web = pytest.mark.skipif(
    nodejs.node() is None or not (MODULES / "onnxruntime-web").is_dir(),
    reason="no Node.js, or `npm ci` was not run in tests/deployment/bundles/clients: `make test` does where npm is",
)


def bundled(model: Any, folder: Path, **how: Any) -> tuple[Path, dict[str, Any]]:
    result = onnxsmith.bundle(model, folder / "out", form="web", clients={"node_modules": MODULES}, **how)
    assert result.ok, result.report.problems
    assert result.path is not None
    return result.path, checks(result.report)


def in_node(folder: Path, program: str, *words: str) -> Any:
    """What a program in the folder of a bundle prints, read as JSON."""
    (folder / "try.mjs").write_text(program, encoding="utf-8")
    engine = nodejs.node()
    assert engine is not None
    done = subprocess.run([engine[0], "try.mjs", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_python(folder: Path) -> Any:
    import runpy

    return runpy.run_path(str(folder / "processing.py"))


@needs_web
@pytest.mark.parametrize("make", [linear, hostile, classifier, upscaler])
def test_a_model_runs_in_node_and_in_a_page(tmp_path: Path, make: Any) -> None:
    _, found = bundled(make(tmp_path), tmp_path)
    assert found["JavaScript module"].state == "equal"
    page = found["page"]
    if nodejs.browser() is None:
        assert (page.state, page.detail) == ("not run", "no Chromium is installed")
    else:
        assert page.state == "equal" or page.detail == "the browser gave no answer"


@needs_web
def test_a_changed_weight_fails_with_the_output(tmp_path: Path) -> None:
    out, _ = bundled(linear(tmp_path), tmp_path)
    model = onnx.load(out / "model" / "model.onnx")
    array = numpy_helper.to_array(model.graph.initializer[0]).copy()
    array += 0.01
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
    onnx.save(model, out / "model" / "model.onnx")
    entry = (MODULES / "onnxruntime-web" / "dist" / "ort.wasm.bundle.min.mjs").as_uri()
    engine = nodejs.node()
    assert engine is not None
    words = [engine[0], "verify.mjs", "--json", entry]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    assert done.returncode == 1
    assert said["wrong"][0] == '"model/model.onnx" is not the file that was verified'
    assert 'output "y" differs on input 1' in said["wrong"][1]


@needs_web
def test_a_model_that_the_client_refuses(tmp_path: Path) -> None:
    """A model of an opset that onnxruntime-web does not know."""
    out, _ = bundled(linear(tmp_path), tmp_path)
    model = onnx.load(out / "model" / "model.onnx")
    model.opset_import[0].version = 1000
    (out / "model" / "model.onnx").write_bytes(model.SerializeToString())
    index = json.loads((out / "bundle.json").read_text())
    index["files"]["model/model.onnx"] = hashlib.sha256(model.SerializeToString()).hexdigest()
    (out / "bundle.json").write_text(json.dumps(index))
    entry = (MODULES / "onnxruntime-web" / "dist" / "ort.wasm.bundle.min.mjs").as_uri()
    engine = nodejs.node()
    assert engine is not None
    done = clients.run([engine[0], "verify.mjs", "--json", entry], folder=out)
    assert done.status == 2
    with pytest.raises(OnnxsmithError, match="opset") as caught:
        clients.replayed("JavaScript module", "onnxruntime-web", done)
    assert caught.value.problem.id == "bundle/client-failed"


@needs_web
@pytest.mark.parametrize(
    "dtype", [TensorProto.INT64, TensorProto.FLOAT16, TensorProto.BOOL, TensorProto.UINT8, TensorProto.STRING]
)
def test_dtypes(tmp_path: Path, dtype: int) -> None:
    _, found = bundled(identity(tmp_path, ("x", "y", dtype, ["n", 2])), tmp_path)
    assert found["JavaScript module"].state == "equal"


@needs_web
def test_external_data(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    _, found = bundled(path, tmp_path)
    assert found["JavaScript module"].state == "equal"


@needs_node
def test_a_model_is_loaded_from_the_disk_in_node(tmp_path: Path) -> None:
    """Node.js has a fetch that takes no file: addresses."""
    path = classifier(tmp_path)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w 1.bin", size_threshold=0)
    result = onnxsmith.bundle(path, tmp_path / "o", form="web", clients={"node_modules": tmp_path})
    assert result.ok
    program = """
import { Model } from "./model.mjs";
const create = async (bytes, options) => ({ bytes: bytes.length, data: options.externalData[0].data.length });
const { session } = await Model.load({ InferenceSession: { create } });
const read = async (path) => new TextEncoder().encode(path);
const other = await Model.load({ InferenceSession: { create } }, {}, read);
console.log(JSON.stringify([session, other.session]));
"""
    own, given = in_node(tmp_path / "o", program)
    assert own == {"bytes": path.stat().st_size, "data": (tmp_path / "w 1.bin").stat().st_size}
    assert given == {"bytes": len("model/model.onnx"), "data": len("model/w 1.bin")}
    assert "`Model.load(ort, options, read)`" in (tmp_path / "o" / "README.md").read_text()


@needs_node
def test_the_example_of_the_readme_fits_the_model(tmp_path: Path) -> None:
    assert onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="web", clients={"node_modules": tmp_path}).ok
    text = (tmp_path / "o" / "README.md").read_text()
    example = text.split("model.run(")[1].split(");")[0]
    other = example.replace('"float"', '"float32"')
    assert other != example
    program = f"import {{ check }} from './model.mjs'; check({example}); check({other}); console.log('1');"
    assert in_node(tmp_path / "o", program) == 1


@needs_node
def test_an_error_has_its_own_name(tmp_path: Path) -> None:
    assert onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="web", clients={"node_modules": tmp_path}).ok
    program = """
import { check } from "./model.mjs";
try { check({}); } catch (error) { console.log(JSON.stringify([error.name, error.message])); }
"""
    assert in_node(tmp_path / "o", program) == ["InputError", 'input "x" is missing']


def test_without_the_package_nothing_is_claimed(tmp_path: Path) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="web", clients={"node_modules": tmp_path})
    assert result.ok
    assert {check.state for check in checks(result.report).values()} == {"not run"}
    assert "JavaScript module, page: not run: onnxruntime-web was not found" in result.report.headline


def test_lists_and_bfloat16_are_refused(tmp_path: Path) -> None:
    model = identity(tmp_path, ("x", "y", TensorProto.BFLOAT16, ["n"]))
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(model, tmp_path / "o", form="web")
    assert caught.value.problem.id == "bundle/not-for-form"


@needs_node
def test_a_wrong_input_is_named(tmp_path: Path) -> None:
    result = onnxsmith.bundle(
        linear(tmp_path), tmp_path / "o", form="web", dim_ranges=("batch=1:2:8",), clients={"node_modules": tmp_path}
    )
    assert result.path is not None
    program = """
import { check } from "./model.mjs";
const said = [];
const x = (dtype, shape, data) => ({ x: { dtype, shape, data } });
for (const inputs of [{}, { z: 1 }, x("double", [1, 3], new Float64Array(3)), x("float", [1, 3], [1, 2, 3]),
  x("float", [3], new Float32Array(3)), x("float", [1, 4], new Float32Array(4)), x("float", [9, 3], new
  Float32Array(27)), x("float", [2, 3], new Float32Array(7)), x("float", [2, 3], new Float32Array(6))]) {
  try { check(inputs); said.push(""); } catch (error) { said.push(error.message); }
}
console.log(JSON.stringify(said));
"""
    assert in_node(result.path, program) == [
        'input "x" is missing',
        'the model has no input "z"; it has "x"',
        'input "x" has dtype double, not float',
        'the data of input "x" is no Float32Array',
        'input "x" has shape [3], not [batch, 3]',
        'input "x" has shape [1, 4], not [batch, 3]: axis 1 is 3',
        '"batch" is 9 in input "x"; declared is 1 to 8',
        'input "x" has 7 elements, its shape 6',
        "",
    ]


SETTINGS: list[dict[str, Any]] = [
    {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.1)},
    {"fit": "crop", "shorter": 11, "resize": "bicubic", "colour": "bgr"},
    {"resize": "bicubic", "colour": "grey"},
]


@needs_node
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("shape", [(5, 9), (64, 48), (8, 8), (8, 31)])
def test_pictures_are_processed_as_in_python(tmp_path: Path, settings: dict[str, Any], shape: tuple[int, int]) -> None:
    model = classifier(tmp_path)
    how: dict[str, Any] = {
        "task": "image-classification",
        "processing": settings,
        "clients": {"node_modules": tmp_path},
    }
    for form in ("python", "web"):
        assert onnxsmith.bundle(model, tmp_path / form, form=form, **how).ok
    pixels = np.random.default_rng(3).integers(0, 256, (*shape, 3), dtype=np.uint8)
    expected = in_python(tmp_path / "python")["preprocess"](pixels)
    (tmp_path / "web" / "p.bin").write_bytes(pixels.tobytes())
    program = f"""
import {{ readFileSync }} from "node:fs";
import {{ preprocess }} from "./processing.mjs";
const found = preprocess({{ height: {shape[0]}, width: {shape[1]}, data: new Uint8Array(readFileSync("p.bin")) }});
console.log(JSON.stringify({{ shape: found.shape, data: [...found.data] }}));
"""
    found = in_node(tmp_path / "web", program)
    assert found["shape"] == list(expected.shape)
    assert np.abs(np.array(found["data"]) - expected.ravel()).max() <= 1e-5


@needs_node
def test_super_resolution_gives_the_picture_that_python_gives(tmp_path: Path) -> None:
    model = upscaler(tmp_path)
    for form in ("python", "web"):
        how: dict[str, Any] = {"task": "super-resolution", "clients": {"node_modules": tmp_path}}
        assert onnxsmith.bundle(model, tmp_path / form, form=form, **how).ok
    python = in_python(tmp_path / "python")
    random = np.random.default_rng(4)
    pixels = random.integers(0, 256, (19, 23, 3), dtype=np.uint8)
    luminance = random.random((1, 1, 38, 46)).astype(np.float32)
    (tmp_path / "web" / "p.bin").write_bytes(pixels.tobytes())
    (tmp_path / "web" / "y.bin").write_bytes(luminance.tobytes())
    program = """
import { readFileSync } from "node:fs";
import { preprocess, postprocess } from "./processing.mjs";
const picture = { height: 19, width: 23, data: new Uint8Array(readFileSync("p.bin")) };
const y = { shape: [1, 1, 38, 46], data: new Float32Array(new Uint8Array(readFileSync("y.bin")).buffer) };
const large = postprocess(y, picture);
console.log(JSON.stringify({ x: [...preprocess(picture).data], large: [...large.data] }));
"""
    found = in_node(tmp_path / "web", program)
    assert np.abs(np.array(found["x"]) - python["preprocess"](pixels).ravel()).max() <= 1e-5
    assert np.array_equal(np.array(found["large"]), python["postprocess"](luminance, pixels).ravel())


@needs_node
def test_colours_are_those_of_python_and_nearly_those_of_pillow(tmp_path: Path) -> None:
    how: dict[str, Any] = {"task": "super-resolution", "clients": {"node_modules": tmp_path}}
    assert onnxsmith.bundle(upscaler(tmp_path), tmp_path / "o", form="web", **how).ok
    steps = np.arange(0, 256, 5, dtype=np.uint8)
    pixels = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(52, -1, 3)
    (tmp_path / "o" / "p.bin").write_bytes(pixels.tobytes())
    program = f"""
import {{ readFileSync }} from "node:fs";
import {{ toYCbCr }} from "./processing.mjs";
const data = new Uint8Array(readFileSync("p.bin"));
const planes = toYCbCr({{ height: {pixels.shape[0]}, width: {pixels.shape[1]}, data }});
console.log(JSON.stringify(planes.map((plane) => [...plane.data])));
"""
    found = np.array(in_node(tmp_path / "o", program))
    pillow = np.asarray(Image.fromarray(pixels).convert("YCbCr")).reshape(-1, 3).T.astype(int)
    assert np.abs(found - pillow).max() <= 1  # Pillow's tables have six bits behind the point
    assert onnxsmith.bundle(tmp_path / "upscaler.onnx", tmp_path / "p", form="python", task="super-resolution").ok
    python = in_python(tmp_path / "p")
    planes = python["to_ycbcr"](pixels)
    assert np.array_equal(found, [plane.ravel() for plane in planes])
    assert np.abs(python["from_ycbcr"](*planes).astype(int) - pixels).max() <= 2


@needs_node
def test_a_line_of_text_is_decoded_as_in_python(tmp_path: Path) -> None:
    model = reader(tmp_path)
    (tmp_path / "chars.txt").write_text("a\nb\nc\n'\n", encoding="utf-8")
    settings = {"labels": tmp_path / "chars.txt"}
    how: dict[str, Any] = {"task": "ocr", "processing": settings, "clients": {"node_modules": tmp_path}}
    for form in ("python", "web"):
        assert onnxsmith.bundle(model, tmp_path / form, form=form, **how).ok
    best = [1, 1, 0, 1, 2, 2, 0, 0, 4, 3]
    scores = np.eye(5, dtype=np.float32)[best][None]
    python = in_python(tmp_path / "python")
    assert python["postprocess"](scores) == "aab'c"
    pixels = np.random.default_rng(5).integers(0, 256, (20, 61, 3), dtype=np.uint8)
    expected = python["preprocess"](pixels)
    (tmp_path / "web" / "p.bin").write_bytes(pixels.tobytes())
    program = f"""
import {{ readFileSync }} from "node:fs";
import {{ preprocess, postprocess }} from "./processing.mjs";
const text = postprocess({{ shape: [1, 10, 5], data: new Float32Array({json.dumps(scores.ravel().tolist())}) }});
const found = preprocess({{ height: 20, width: 61, data: new Uint8Array(readFileSync("p.bin")) }});
console.log(JSON.stringify({{ text, shape: found.shape, data: [...found.data] }}));
"""
    found = in_node(tmp_path / "web", program)
    assert found["text"] == "aab'c"
    assert found["shape"] == list(expected.shape)
    assert np.abs(np.array(found["data"]) - expected.ravel()).max() <= 1e-5


def reader(folder: Path) -> Path:
    """Gives scores of 5 classes for each column of a picture [batch, 3, 8, width]."""
    weight = np.random.default_rng(6).standard_normal((3, 5)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["pixels"], ["m"], axes=[2], keepdims=0),
        helper.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t", "w"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "reader",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, 8, "width"])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", "width", 5])],
        [numpy_helper.from_array(weight, "w")],
    )
    return written(folder, graph, name="reader")
