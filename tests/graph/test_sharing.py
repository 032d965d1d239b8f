"""Large weights in one data file: the model computes what it did, and refers to the file; what is small stays."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.sharing import LARGE, held, share_weights
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes import _idle
from tests.conftest import Refused

SIDE = 2100
"""Rows and columns of a weight that is larger than what stays in memory."""
TEXT = f"""<ir_version: 10, opset_import: ["": 20]>
g (float[1,{SIDE}] x) => (float[1,{SIDE}] y) <float[1,1] w = {{0}}, float[1] small = {{0}}> {{
    c = Constant <value = float[3] {{1, 2, 3}}> ()
    k = ReduceSum <keepdims = 0> (c)
    p = MatMul (x, w)
    q = Add (p, small)
    y = Mul (q, k)
}}"""


def model() -> ir.Model:
    made = from_text(TEXT)
    rng = np.random.default_rng(0)
    for name, shape in (("w", (SIDE, SIDE)), ("small", (SIDE,))):
        weight = made.graph.initializers[name]
        weight.const_value = ir.tensor(rng.standard_normal(shape).astype(np.float32), name=name)
        weight.shape = ir.Shape(shape)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(model(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_the_model_refers_to_the_file_and_has_the_same_values(file: Path, tmp_path: Path) -> None:
    before, mine = load(file), load(file)
    assert held(mine) > LARGE
    share_weights(mine, tmp_path / "weights")
    assert held(mine) < LARGE
    assert (tmp_path / "weights").stat().st_size >= SIDE * SIDE * 4
    for ours, theirs in zip(walk.tensors(before), walk.tensors(mine), strict=True):
        assert (ours.name, ours.dtype, ours.shape) == (theirs.name, theirs.dtype, theirs.shape)
        assert np.array_equal(ours.numpy(), theirs.numpy())


def test_the_message_that_it_was_read_from_is_let_go_of(file: Path, tmp_path: Path) -> None:
    """Each tensor that wraps a part of a message keeps all of it in memory."""
    mine = load(file)
    parts = [tensor.raw for tensor in walk.tensors(mine) if isinstance(tensor, ir.serde.TensorProtoTensor)]
    share_weights(mine, tmp_path / "weights")
    left = [tensor.raw for tensor in walk.tensors(mine) if isinstance(tensor, ir.serde.TensorProtoTensor)]
    assert left
    assert not any(one is part for one in left for part in parts)


def test_small_weights_stay(tmp_path: Path) -> None:
    small = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> '
        "{ y = Add(x, w) }"
    )
    share_weights(small, tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


def test_a_missing_folder_is_said(file: Path, tmp_path: Path, refused: Refused) -> None:
    with refused("save/no-folder"):
        share_weights(load(file), tmp_path / "there" / "is" / "none")


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("runtime", ["reference", "openvino", "onnxruntime:disable"])
def test_an_error_in_large_weights_is_found_at_every_runtime(tmp_path: Path, runtime: str, outside: bool) -> None:
    right, wrong = model(), model()
    weight = wrong.graph.initializers["w"]
    assert weight.const_value is not None
    weight.const_value = ir.tensor(weight.const_value.numpy() + (np.arange(SIDE) == 7), dtype=ir.DataType.FLOAT)
    save(right, tmp_path / "right.onnx", external_data=outside)
    save(wrong, tmp_path / "wrong.onnx", external_data=outside)
    found = onnxsmith.compare(tmp_path / "right.onnx", f"{tmp_path / 'wrong.onnx'}@{runtime}", per_layer=True)
    assert found.report.part(Layers).culprits == ("p",)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_comparison_leaves_no_weights_behind(file: Path, temporary: Path) -> None:
    result = onnxsmith.compare(file, f"{file}@onnxruntime:disable", per_layer=True)
    assert result.ok
    _idle.end_all()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("candidate", ["none.onnx", "{file}@nothing", "one.onnx", "two.onnx"])
def test_a_comparison_that_is_refused_leaves_none_either(
    file: Path, tmp_path: Path, temporary: Path, candidate: str
) -> None:
    (tmp_path / "one.onnx").write_bytes(b"no model")
    two = model()
    two.graph.outputs.append(next(value for node in two.graph for value in node.outputs if value.name == "q"))
    save(two, tmp_path / "two.onnx")
    other = candidate.format(file=file) if "{" in candidate else str(tmp_path / candidate)
    with pytest.raises(onnxsmith.OnnxsmithError):
        onnxsmith.compare(file, other, per_layer=True)
    _idle.end_all()
    assert not list(temporary.iterdir())


def test_a_model_of_the_caller_keeps_its_weights(file: Path) -> None:
    mine = load(file)
    tensors = [value.const_value for value in walk.initializers(mine)]
    assert onnxsmith.compare(mine, file, per_layer=True).ok
    assert all(one is value.const_value for one, value in zip(tensors, walk.initializers(mine), strict=True))
