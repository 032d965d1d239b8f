"""Models in float16 and bfloat16, whose own rounding hides a fault of 1%, are compared in float32 as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch

import onnxsmith
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.single_precision import single


def test_a_deep_model_in_float16_is_verified_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    layers = [part for index in range(8) for part in (torch.nn.Conv2d(64 if index else 3, 64, 3), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64, 100)).half().eval()
    args, path = (torch.randn(2, 3, 17, 17, dtype=torch.float16),), tmp_path / "m.onnx"
    report = onnxsmith.export(net, args, output=path, dynamic={"input": {0: "n"}}).report
    assert report.verdict.exit_code == 0, report.headline
    assert onnxsmith.compare((net, args), path).report.verdict.exit_code == 0
    net[8].weight.data[:32] *= 1.5
    assert onnxsmith.compare((net, args), path).report.verdict.exit_code == 1


def test_a_weight_in_bfloat16_keeps_its_dtype_beside_a_normalisation(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).to(torch.bfloat16).eval()
    path = tmp_path / "m.onnx"
    report = onnxsmith.export(net, (torch.randn(1, 3, 8, 8, dtype=torch.bfloat16),), output=path).report
    assert report.verdict.exit_code == 0, report.headline
    weights = [value.const_value for value in ir.load(path).graph.initializers.values()]
    assert {weight.dtype for weight in weights if weight is not None} == {ir.DataType.BFLOAT16}


HALF = """
<ir_version: 10, opset_import: ["": 20]>
g (float16[n,4] x) => (float16[n,4] y) <float16[4] w = {1, 2, 3, 4}> {
    c = Constant<value = float16[1] {2}>()
    a = Mul(x, w)
    b = Cast<to = 10>(a)
    y = Add(b, c)
}
"""


def test_a_copy_has_no_narrow_tensor() -> None:
    copy = single(from_text(HALF))
    assert copy is not None
    values = [*copy.graph.inputs, *copy.graph.outputs, *copy.graph.initializers.values()]
    assert {value.dtype for value in values} == {ir.DataType.FLOAT}
    x = np.ones((2, 4), np.float16)
    narrow = onnxsmith.run(from_text(HALF), {"x": x}).outputs["y"]
    np.testing.assert_array_equal(
        onnxsmith.run(copy, {"x": x.astype(np.float32)}).outputs["y"].astype(np.float16), narrow
    )


@pytest.mark.parametrize(
    "text",
    [
        HALF.replace("float16", "float").replace("to = 10", "to = 1"),
        HALF.replace("y = Add(b, c)", "q = QuantizeLinear(b, c)\n y = DequantizeLinear(q, c)"),
        HALF.replace("Mul(x, w)", "com.a.Mul(x, w)").replace('"": 20', '"": 20, "com.a": 1'),
    ],
)
def test_there_is_no_copy_of_other_models(text: str) -> None:
    assert single(from_text(text)) is None
