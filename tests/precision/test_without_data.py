"""`quantize` without data, and what its report says of the layers that it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from tests.conftest import Refused

DRAW = np.random.default_rng(0)
NETWORK = """<ir_version: 10, opset_import: ["": 18]>
g (float[n,1,16,16] x, float[16,1,3,3] small, float[32,16,3,3] large, float[1568,10] last) => (float[n,10] y) {
  a = Conv<pads = [1,1,1,1]>(x, small) b = Relu(a) c = Conv<strides = [2,2]>(b, large) d = Relu(c)
  e = Flatten(d) y = MatMul(e, last) }"""
SHAPES = {"small": (16, 1, 3, 3), "large": (32, 16, 3, 3), "last": (32 * 7 * 7, 10)}


def stored(folder: Path, dtype: Any = np.float32) -> Path:
    model = from_text(NETWORK.replace("float[", f"{ir.DataType.from_numpy(np.dtype(dtype)).name.lower()}["))
    for value in [one for one in model.graph.inputs if one.name in SHAPES]:
        shape = SHAPES[str(value.name)]
        array = (DRAW.standard_normal(shape) * np.prod(shape[1:]) ** -0.5).astype(dtype)
        value.const_value = ir.tensor(array, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    save(model, folder / "model.onnx")
    return folder / "model.onnx"


def quantised(path: Path, **more: Any) -> Any:
    return onnxsmith.quantize(path, path.with_name("out.onnx"), measure_time=False, **more)


def test_int8_without_data_leaves_activations_as_they_are(tmp_path: Path) -> None:
    """Ranges of generated inputs would say nothing about real ones."""
    path = stored(tmp_path)
    result = quantised(path, to="int8")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert "QuantizeLinear" not in walk.histogram(load(tmp_path / "out.onnx"))
    told = result.report.part(Quantisation)
    assert all(layer.weights or layer.kept for layer in told.layers)
    assert any("without data the ranges of activations are not known" in note for note in told.notes)
    data = [{"x": DRAW.standard_normal((1, 1, 16, 16)).astype(np.float32)} for _ in range(16)]
    result = quantised(path, to="int8", data=data, budget="5%")
    assert "QuantizeLinear" in walk.histogram(load(tmp_path / "out.onnx"))


def test_a_method_that_has_to_know_ranges_asks_for_data(tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("nncf")
    with refused("quantize/no-data") as refusal:
        quantised(stored(tmp_path), to="int8-nncf")
    assert "int8-dynamic" in refusal.problem.fix
    assert not (tmp_path / "out.onnx").exists()


def test_every_product_is_counted(tmp_path: Path) -> None:
    """Also one with few weights."""
    told = quantised(stored(tmp_path), to="int8-dynamic").report.part(Quantisation)
    assert {one.op: one.count for one in told.left} == {"Conv": 2}
    assert len(told.layers) == 1


def test_weights_in_float16_are_the_reason(tmp_path: Path, refused: Refused) -> None:
    with refused("quantize/nothing") as refusal:
        quantised(stored(tmp_path, np.float16), to="int8")
    assert "float16" in refusal.problem.what + refusal.problem.why
    assert "float32" in refusal.problem.fix


def test_a_model_without_weights_of_floats_is_refused_at_once(tmp_path: Path, refused: Refused) -> None:
    text = '<ir_version: 9, opset_import: ["": 18]> g (float[4] x) => (float[4] y) { y = Abs(x) }'
    save(from_text(text), tmp_path / "model.onnx")
    with refused("quantize/nothing") as refusal:
        quantised(tmp_path / "model.onnx")
    assert refusal.problem.where == "the model has no weights in floats"


def test_a_model_of_which_no_layer_becomes_narrow_is_refused(tmp_path: Path, refused: Refused) -> None:
    """Also if the file becomes smaller, because what nobody reads is gone."""
    text = """<ir_version: 9, opset_import: ["": 13]>
    g (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }"""
    model = from_text(text)
    unread = ir.tensor(np.ones(64, np.float32), name="unread")
    model.graph.register_initializer(ir.Value(name="unread", const_value=unread))
    save(model, tmp_path / "model.onnx")
    with refused("quantize/nothing") as refusal:
        quantised(tmp_path / "model.onnx", to="int8", data=None)
    assert refusal.problem.why == "the layer has no large weights"


def test_weights_among_the_graph_inputs_become_constants(tmp_path: Path) -> None:
    """Files of old exporters list each weight among the inputs. An initial state stays one."""
    path = stored(tmp_path)
    model = load(path)
    model.graph.inputs.extend(model.graph.initializers.values())
    save(model, path)
    result = quantised(path, to="int8", data=None)
    assert [value.name for value in load(tmp_path / "out.onnx").graph.inputs] == ["x"]
    notes = result.report.part(Quantisation).notes
    assert "3 weights were also graph inputs, which a caller could replace; now they are constants" in notes
