"""Arguments in the wrong place end in a problem whose fix names the right one, and never in an error of Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.test_circumstances import command

X = np.ones((2, 4), np.float32)
TEXT = '<ir_version: 10, opset_import: ["": 20]> g (float[n,4] x) => (float[n,4] y) { y = Abs(x) }'

UNNAMED: dict[str, Callable[[Path, Any], Any]] = {
    "run": lambda file, given: onnxsmith.run(file, given),
    "compare": lambda file, given: onnxsmith.compare(file, file, inputs=given),
    "simplify": lambda file, given: onnxsmith.simplify(file, inputs=given),
    "bench": lambda file, given: onnxsmith.bench(file, inputs=given),
    "check": lambda file, given: onnxsmith.check(file, ["onnxruntime"], inputs=given),
    "dump": lambda file, given: onnxsmith.dump(file, inputs=given),
    "bisect": lambda file, given: onnxsmith.bisect(file, inputs=given),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(TEXT), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("given", [X, [X], (X,)], ids=["an array", "a list", "a tuple"])
@pytest.mark.parametrize("verb", UNNAMED)
def test_an_array_without_a_name(file: Path, verb: str, given: Any) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        UNNAMED[verb](file, given)
    assert caught.value.problem.id == "input/unnamed"
    assert caught.value.problem.fix == 'write inputs={"x": array}'


def test_a_text_alone_is_one_text(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(onnxsmith.run(file, f"x={tmp_path / 'x.npy'}").outputs["y"], X)


@pytest.mark.parametrize("given", [None, 3, b"bytes", np.ones(3), dict])
def test_what_is_no_model(given: Any) -> None:
    for verb in (onnxsmith.simplify, onnxsmith.inspect, onnxsmith.run):
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            verb(given)
        assert caught.value.problem.id == "model/not-given"


def test_a_module_where_a_file_is_wanted() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(torch.nn.Linear(4, 4))
    assert "onnxsmith.export(module" in caught.value.problem.fix


def test_the_arguments_of_torch_onnx_export(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module, x = torch.nn.Linear(4, 3), torch.ones(2, 4)
    for wrong in (
        lambda: onnxsmith.export(module, x, str(tmp_path / "m.onnx")),  # type: ignore[arg-type]
        lambda: onnxsmith.export(module, (x,), tmp_path / "m.onnx"),  # type: ignore[arg-type]
        lambda: onnxsmith.export(module, output=tmp_path / "m.onnx", inputs=x),
        lambda: onnxsmith.export(module, output=tmp_path / "m.onnx", inputs=(x,)),
    ):
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            wrong()
        assert caught.value.problem.id == "export/arguments"
    assert onnxsmith.export(module, x, output=tmp_path / "m.onnx").ok


SEEDED: dict[str, Callable[[Path], Any]] = {
    "run": lambda file: onnxsmith.run(file, random=True, seed=-1),
    "compare": lambda file: onnxsmith.compare(file, file, seed=-1),
    "compare with inputs": lambda file: onnxsmith.compare(file, file, inputs={"x": X}, generate=False, seed=-1),
    "simplify": lambda file: onnxsmith.simplify(file, verify=onnxsmith.Verify(seed=-1)),
    "bench": lambda file: onnxsmith.bench(file, seed=-1),
    "dump": lambda file: onnxsmith.dump(file, seed=-1),
}


@pytest.mark.parametrize("verb", SEEDED)
def test_a_negative_seed(file: Path, verb: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        SEEDED[verb](file)
    assert caught.value.problem.id == "input/seed"


@pytest.mark.parametrize("words", ["--steps -1", "--memory 0", "--memory -5", "--min-paired 1.5", "--min-paired nan"])
def test_a_number_of_compare_out_of_its_range(file: Path, words: str) -> None:
    done = command("compare", str(file), str(file), "--per-layer", *words.split(), cwd=file.parent)
    assert done.returncode == 2
    assert "compare/number" in done.stderr
