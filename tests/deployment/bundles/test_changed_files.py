"""Every `verify` names the files that were changed or are missing, first of all, and shows no traceback for them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import onnxsmith
from onnxsmith.deployment.bundles import nodejs, templates
from tests.deployment.bundles.models import linear

needs_node = pytest.mark.skipif(nodejs.node() is None, reason="no Node.js 18 or later is installed")
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed")


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit of the weights": (lambda at: flipped(at / "model" / "model.onnx"), "model/model.onnx"),
    "a bit of a golden output": (lambda at: flipped(at / "golden" / "0_output_0.bin"), "golden/0_output_0.bin"),
    "a cut golden output": (
        lambda at: (at / "golden" / "0_output_0.bin").write_bytes(b"12345"),
        "golden/0_output_0.bin",
    ),
    "no golden input": (lambda at: (at / "golden" / "0_input_0.bin").unlink(), "golden/0_input_0.bin"),
    "no manifest": (lambda at: (at / "golden" / "manifest.json").unlink(), "golden/manifest.json"),
    "a broken manifest": (lambda at: (at / "golden" / "manifest.json").write_text("{"), "golden/manifest.json"),
    "another README": (lambda at: (at / "README.md").write_text("mine"), "README.md"),
    "no index": (lambda at: (at / "bundle.json").unlink(), "bundle.json"),
    "a broken index": (lambda at: (at / "bundle.json").write_text('{"files": 3}'), "bundle.json"),
    "an empty index": (lambda at: (at / "bundle.json").write_text('{"files": {}}'), "bundle.json"),
}
changes = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Bundles of one model, by form."""
    folder = tmp_path_factory.mktemp("bundles")
    for form in ("python", "web", "triton", "tensorrt"):
        clients = {"node_modules": folder} if form == "web" else {}
        assert onnxsmith.bundle(linear(folder), folder / form, form=form, clients=clients).ok
    return {form: folder / form for form in ("python", "web", "triton", "tensorrt")}


def changed(bundles: dict[str, Path], form: str, change: str, folder: Path) -> Path:
    place = folder / form
    shutil.copytree(bundles[form], place)
    CHANGES[change][0](place)
    return place


def said(place: Path, *words: Any) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in words], cwd=place, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def is_named(change: str, status: int, output: str) -> None:
    name = CHANGES[change][1]
    assert status == 1
    first = output.splitlines()[0]
    assert first[1:].startswith(name), output
    assert first.endswith(("is not the file that was verified", "is missing", "no file could be checked"))


@changes
def test_in_python(bundles: dict[str, Path], tmp_path: Path, change: str) -> None:
    place = changed(bundles, "python", change, tmp_path)
    is_named(change, *said(place, sys.executable, "-B", "verify.py"))


@pytest.mark.parametrize("change", ["a broken manifest", "no index", "another README"])
def test_on_triton_and_tensorrt(bundles: dict[str, Path], tmp_path: Path, change: str) -> None:
    """The clients are not here: what they would raise is less than the name of the file."""
    place = changed(bundles, "tensorrt", change, tmp_path)
    is_named(change, *said(place, sys.executable, "-B", "verify_trt.py"))
    place = changed(bundles, "triton", change, tmp_path)
    (place / "tritonclient").mkdir()
    (place / "tritonclient" / "__init__.py").write_text("")
    (place / "tritonclient" / "http.py").write_text("class InferenceServerClient:\n def __init__(self, url): pass\n")
    is_named(change, *said(place, sys.executable, "-B", "client.py"))


@needs_node
@changes
def test_in_javascript(bundles: dict[str, Path], tmp_path: Path, change: str) -> None:
    """With a client that fails on everything."""
    place = changed(bundles, "web", change, tmp_path)
    (place / "ort.mjs").write_text(
        "export const env = { wasm: {} };\n"
        "export const InferenceSession = { create: async () => { throw new Error('no'); } };\n"
    )
    engine = nodejs.node()
    assert engine is not None
    is_named(change, *said(place, engine[0], "verify.mjs", (place / "ort.mjs").as_uri()))


def texts(folder: Path, form: str, task: str) -> Path:
    """A bundle for texts that has nothing but a verify and a model, with an index."""
    place = folder / form
    (place / "model").mkdir(parents=True)
    (place / "model" / "model.onnx").write_bytes(b"weights")
    (place / "config.json").write_text("{}")
    content = SimpleNamespace(task=task, model_file="model/model.onnx")
    name, kind = ("verify.py", "genai") if form == "genai" else ("verify.mjs", "transformers_js")
    templates.write(place, name, f"{kind}/{name}", content=content)
    golden = "golden.py" if form == "genai" else "golden.mjs"
    templates.write(place, golden, f"shared/{golden}", content=content)
    files = {file.relative_to(place).as_posix(): file for file in place.rglob("*") if file.is_file()}
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    (place / "bundle.json").write_text(json.dumps({"files": digests}, indent=1))
    return place


TEXTS = ["model/model.onnx", "config.json", "bundle.json"]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("form", ["genai", pytest.param("transformers-js", marks=needs_node)])
@pytest.mark.parametrize("task", ["text-generation", "text-classification"])
def test_of_texts(tmp_path: Path, form: str, task: str, name: str) -> None:
    place = texts(tmp_path, form, task)
    (place / name).write_bytes(b"other")
    if form == "genai":
        words: list[Any] = [sys.executable, "-B", "verify.py"]
    else:
        module = place / "transformers.mjs"
        module.write_text(
            "export const env = {}; export class Tensor {}\n"
            "export const pipeline = async () => { throw new Error('no'); };\n"
        )
        engine = nodejs.node()
        assert engine is not None
        words = [engine[0], "verify.mjs", module.as_uri()]
    status, output = said(place, *words)
    assert status == 1
    assert output[1:].startswith(name)


MAIN = """#include "files.hpp"
#include <iostream>
int main(int, char** words) {
  for (const auto& line : bundle_files::changed(words[1])) std::cout << line << std::endl;
}
"""


@needs_compiler
def test_in_cpp(tmp_path: Path) -> None:
    """Digests of files of all lengths around a block, and names as JSON escapes them."""
    folder = tmp_path / "o"
    names = ['a"b', "back\\slash", "é\U0001f600 ß", "tab\there"] + [
        f"d/{size}" for size in (0, 55, 56, 63, 64, 65, 200_000)
    ]
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * int(file.name) if name.startswith("d/") else name.encode())
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    index = {"format": 1, "checks": [{"detail": '"files": {"no": "no"}'}], "files": digests}
    (folder / "bundle.json").write_text(json.dumps(index, indent=1) + "\n")
    templates.write(tmp_path, "files.hpp", "cpp/files.hpp")
    (tmp_path / "main.cpp").write_text(MAIN)
    words = ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-o", tmp_path / "main", tmp_path / "main.cpp"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    assert said(folder, tmp_path / "main", ".") == (0, "")
    flipped(folder / "d" / "64")
    (folder / names[2]).unlink()
    lines = [f"{json.dumps(names[2])} is missing", '"d/64" is not the file that was verified']
    assert said(folder, tmp_path / "main", ".")[1].splitlines() == lines
    (folder / "bundle.json").unlink()
    assert said(folder, tmp_path / "main", ".")[1].startswith('"bundle.json" is missing')
