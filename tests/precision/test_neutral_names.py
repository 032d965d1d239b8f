"""Names of tensors that the quantiser derives from others do not collide with names of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.precision.neutral_names import neutral

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,16,6,6] x, float[1] x_scale, float[16,16,2,2] w, float[16] b)
=> (float[1,16,4,4] y, float[1,16,5,5] w_quantized)
{
    b0 = Conv <kernel_shape = [2, 2]> (x, w, b)
    w_quantized = Relu (b0)
    b0_zero_point = Mul (w_quantized, x_scale)
    y = Conv <kernel_shape = [2, 2]> (b0_zero_point, w, b)
}"""


@pytest.fixture
def model() -> ir.Model:
    made = from_text(TEXT)
    draw = np.random.default_rng(0)
    for value in list(made.graph.inputs)[2:]:
        array = draw.standard_normal((16, 16, 2, 2) if value.name == "w" else (16,))
        value.const_value = ir.tensor(array.astype(np.float32), name=value.name)
        made.graph.inputs.remove(value)
        made.graph.register_initializer(value)
    return made


def test_every_layer_is_quantised_and_the_names_stay(model: ir.Model, tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    x, scale = draw.standard_normal((8, 16, 6, 6)), draw.uniform(0.5, 1, (8, 1))
    np.savez(tmp_path / "data.npz", x=x.astype(np.float32), x_scale=scale.astype(np.float32))
    result = onnxsmith.quantize(
        model,
        to="int8",
        data=tmp_path / "data.npz",
        metric="cosine",
        budget="5%",
        measure_time=False,
    )
    part = result.report.part(Quantisation)
    assert [layer.kept for layer in part.layers if layer.op == "Conv"] == ["", ""]
    assert result.model is not None
    graph = result.model.graph
    assert [value.name for value in graph.inputs] == ["x", "x_scale"]
    assert [value.name for value in graph.outputs] == ["y", "w_quantized"]
    assert {"b0", "b0_zero_point"} <= {value.name for value in walk.values(result.model)}
    assert not any("#" in (value.name or "") for value in walk.values(result.model))


def test_names_that_the_library_makes_follow_the_names_of_the_model(model: ir.Model) -> None:
    renamed = neutral(model)
    new = dict(zip(renamed.names, (value.name for value in walk.values(renamed.model)), strict=True))
    assert renamed.by_name({"b0": 1, "other": 2}) == {new["b0"]: 1, "other": 2}
    first, relu, *_ = renamed.model.graph
    first.outputs[0].name = "b0"
    relu.outputs[0].name = f"{new['w']}_quantized"
    relu.name = "made"
    renamed.restore(renamed.model)
    assert [node.outputs[0].name for node in renamed.model.graph] == ["b0_1", "w_quantized_1", "b0_zero_point", "y"]
    assert sorted(renamed.model.graph.initializers) == ["b", "w"]
    assert sorted(model.graph.initializers) == ["b", "w"]
    assert model.graph.initializers["w"].const_value.name == "w"
    told = renamed.error(problem("quantize/refused", "it refuses", why=f"no type of {new['w']}"))
    assert told.problem.why == "no type of w"
