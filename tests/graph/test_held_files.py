"""Models are written though Windows keeps a file that a process holds: a verification maps the weights it checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.system import moving
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import windows

SIZE = 256
VERIFY = onnxsmith.Verify(runtime="reference")
SAVE = onnxsmith.Save(external_data=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with its weights in a data file."""
    head = f'<ir_version: 10, opset_import: ["": 20]> g (float[n,{SIZE}] x) => (float[n,{SIZE}] y)'
    graph = from_text(f"{head} {{ i = Identity(x) h = MatMul(i, x) y = Relu(h) }}")
    weights = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32) / 16
    value = ir.Value(name="w", const_value=ir.tensor(weights, name="w"))
    graph.graph.register_initializer(value)
    graph.graph.node(1).replace_input_with(1, value)
    save(graph, tmp_path / "m.onnx", external_data=True)
    return tmp_path / "m.onnx"


def values(path: Path) -> np.ndarray:
    return load(path).graph.initializers["w"].const_value.numpy()  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["m.onnx", "other.onnx"])
def test_a_model_whose_new_weights_are_mapped_is_written(model: Path, name: str) -> None:
    wanted = np.array(values(model))
    target = model.with_name(name)
    with windows.held_files_stay(model.parent) as refused:
        result = onnxsmith.simplify(model, target, verify=VERIFY, save=SAVE)
    assert result.ok, result.report.problems
    assert refused or name != "m.onnx"
    assert len(load(target).graph) == 2
    assert values(target).tolist() == wanted.tolist()


def test_pieces_whose_weights_are_mapped_are_written(model: Path) -> None:
    with windows.held_files_stay(model.parent) as refused:
        result = onnxsmith.split(model, model.with_name("pieces"), into=2, verify=VERIFY)
    assert result.ok, result.report.problems
    assert [one for one in refused if "pieces" in one]
    assert {file.name for file in model.with_name("pieces").iterdir()} >= {"piece_0.onnx", "piece_1.onnx"}


def test_the_hidden_folder_goes_with_the_next_process(model: Path) -> None:
    """What this process maps stays until it ends; the next writer removes it."""
    with windows.held_files_stay(model.parent):
        onnxsmith.simplify(model, model, verify=VERIFY, save=SAVE)
    code = "import sys; from pathlib import Path; from onnxsmith.base import folders; folders.clear(Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, model.parent], check=True, env=environment)
    assert not [file.name for file in model.parent.iterdir() if file.name.startswith(".")]


def test_the_fake_refuses_what_is_held_and_only_that(tmp_path: Path) -> None:
    held, free = tmp_path / "held", tmp_path / "free"
    for file in (held, free):
        file.write_bytes(b"1")
    with held.open("rb"), windows.held_files_stay(tmp_path) as refused:
        free.rename(tmp_path / "freed")
        with pytest.raises(PermissionError):
            held.rename(tmp_path / "moved")
        with pytest.raises(PermissionError):
            held.unlink()
        moving.HERE.move(held, tmp_path / "moved")
    assert len(refused) == 3
    assert (tmp_path / "moved").read_bytes() == b"1"
