"""Processing in C++ gives what Python's gives. It is compiled with declarations of onnxruntime, which it does not
call."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from tests.deployment.bundles.models import classifier, upscaler
from tests.deployment.bundles.test_web import SETTINGS, reader

STUBS = Path(__file__).parent / "stubs"

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed"),
]

HEAD = """
#include <fstream>
#include <iostream>
#include <iterator>
#include "processing.hpp"
template <typename T> std::vector<T> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<T> found(bytes.size() / sizeof(T));
  std::memcpy(found.data(), bytes.data(), bytes.size());
  return found;
}
template <typename T> void write(const char* path, const std::vector<T>& data) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
}
"""


def both(model: Path, folder: Path, **how: Any) -> tuple[Any, Path]:
    """The processing in Python, and the folder with that in C++."""
    for form in ("python", "cpp"):
        how["clients"] = {"onnxruntime": folder}
        assert onnxsmith.bundle(model, folder / form, form=form, **how).ok
    return runpy.run_path(str(folder / "python" / "processing.py")), folder / "cpp"


def ran(folder: Path, body: str) -> str:
    """What a program prints."""
    (folder / "try.cpp").write_text(HEAD + body, encoding="utf-8")
    words = ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(STUBS), "try.cpp", "-o", "try"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return subprocess.run(["./try"], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("settings", SETTINGS)
def test_pictures(tmp_path: Path, settings: dict[str, Any]) -> None:
    labels = {"labels": ["a", 'b"', "c\\", "d?"]}
    how: dict[str, Any] = {"task": "image-classification", "processing": {**settings, **labels}}
    python, cpp = both(classifier(tmp_path), tmp_path, **how)
    pixels = np.random.default_rng(3).integers(0, 256, (41, 30, 3), dtype=np.uint8)
    (cpp / "p.bin").write_bytes(pixels.tobytes())
    body = """
int main() {
  using namespace classifier_model;
  write("x.bin", preprocess({41, 30, read<std::uint8_t>("p.bin")}).data);
  Bytes scores{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1, 4}, {}};
  const std::vector<float> values = {0.5f, 2.0f, -1.0f, 2.0f};
  scores.data.resize(16);
  std::memcpy(scores.data.data(), values.data(), 16);
  for (const auto& [label, chance] : postprocess(scores)) std::cout << label << ' ' << chance << '\\n';
}
"""
    said = [line.rsplit(" ", 1) for line in ran(cpp, body).splitlines()]
    found = np.frombuffer((cpp / "x.bin").read_bytes(), np.float32)
    assert np.abs(found - python["preprocess"](pixels).ravel()).max() <= 1e-5
    expected = python["postprocess"](np.array([[0.5, 2, -1, 2]], np.float32))
    assert [label for label, _ in said] == [label for label, _ in expected]
    assert np.allclose([float(chance) for _, chance in said], [chance for _, chance in expected], atol=1e-5)


def test_super_resolution(tmp_path: Path) -> None:
    python, cpp = both(upscaler(tmp_path), tmp_path, task="super-resolution")
    random = np.random.default_rng(4)
    pixels = random.integers(0, 256, (19, 23, 3), dtype=np.uint8)
    luminance = random.random((1, 1, 38, 46)).astype(np.float32)
    (cpp / "p.bin").write_bytes(pixels.tobytes())
    (cpp / "y.bin").write_bytes(luminance.tobytes())
    body = """
int main() {
  using namespace upscaler_model;
  const Picture picture{19, 23, read<std::uint8_t>("p.bin")};
  write("x.bin", preprocess(picture).data);
  write("large.bin", postprocess({ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1, 1, 38, 46}, read<char>("y.bin")},
  picture).data);
}
"""
    ran(cpp, body)
    x = np.frombuffer((cpp / "x.bin").read_bytes(), np.float32)
    assert np.abs(x - python["preprocess"](pixels).ravel()).max() <= 1e-5
    large = np.frombuffer((cpp / "large.bin").read_bytes(), np.uint8)
    assert np.array_equal(large, python["postprocess"](luminance, pixels).ravel())


def test_a_line_of_text(tmp_path: Path) -> None:
    python, cpp = both(reader(tmp_path), tmp_path, task="ocr", processing={"labels": ["a", "b", "ü", '"']})
    scores = np.eye(5, dtype=np.float32)[[1, 1, 0, 1, 2, 2, 0, 0, 4, 3]]
    pixels = np.random.default_rng(5).integers(0, 256, (20, 61, 3), dtype=np.uint8)
    (cpp / "p.bin").write_bytes(pixels.tobytes())
    (cpp / "s.bin").write_bytes(scores.tobytes())
    body = """
int main() {
  using namespace reader_model;
  write("x.bin", preprocess({20, 61, read<std::uint8_t>("p.bin")}).data);
  std::cout << postprocess({ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1, 10, 5}, read<char>("s.bin")});
}
"""
    assert ran(cpp, body) == python["postprocess"](scores[None]) == 'aab"ü'
    found = np.frombuffer((cpp / "x.bin").read_bytes(), np.float32)
    assert np.abs(found - python["preprocess"](pixels).ravel()).max() <= 1e-5
