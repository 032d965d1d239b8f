"""Modules quantised with torchao: `quantize_` and PT2E."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from tests.exporter.test_quantized import NARROW, equal, kinds, picture, rows, weights

with warnings.catch_warnings(action="ignore"):  # torchao warns of kernels for other machines
    quantization = pytest.importorskip("torchao.quantization", reason="torchao has no wheels for every system")


@pytest.fixture(autouse=True)
def same_numbers() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):
        yield


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)).eval()


def pt2e(module: nn.Module, inputs: Callable[[], Any], **options: Any) -> nn.Module:
    import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as tools
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = tools.X86InductorQuantizer().set_global(tools.get_default_x86_inductor_quantization_config(**options))
    prepared = prepare_pt2e(torch.export.export(module.eval(), inputs()).module(), quantizer)
    prepared(*inputs())
    return convert_pt2e(prepared)


@pytest.mark.parametrize(
    ("config", "options", "dtype"),
    [
        ("Int8WeightOnlyConfig", {}, ir.DataType.INT8),
        ("Int8DynamicActivationInt8WeightConfig", {}, ir.DataType.INT8),
        ("IntxWeightOnlyConfig", {"weight_dtype": "int4", "granularity": 32}, ir.DataType.INT4),
        ("Int8DynamicActivationIntxWeightConfig", {"weight_dtype": "int4", "weight_granularity": 32}, ir.DataType.INT4),
    ],
)
def test_quantize(config: str, options: dict[str, Any], dtype: ir.DataType) -> None:
    made = {
        name: quantization.PerGroup(value) if isinstance(value, int) else getattr(torch, value)
        for name, value in options.items()
    }
    module = linear()
    quantization.quantize_(module, getattr(quantization, config)(**made))
    model = equal(onnxsmith.export(module, rows()))
    stored = [one.const_value for one in model.graph.initializers.values() if one.const_value is not None]
    large = [(tuple(one.shape), one.dtype) for one in stored if one.size >= 16 * 32]
    assert sorted(large) == [((32, 16), dtype), ((64, 32), dtype)]
    assert "MatMul" in kinds(model)


def test_rows_that_are_quantised_at_run_time_have_one_scale() -> None:
    module = linear()
    quantization.quantize_(module, quantization.Int8DynamicActivationInt8WeightConfig())
    model = equal(onnxsmith.export(module, rows(), dynamic={"input": {0: "batch"}}))
    quantisers = [node for node in model.graph if node.op_type == "QuantizeLinear"]
    assert [ir.convenience.get_const_tensor(node.inputs[1]).numpy().tolist() for node in quantisers] == [1.0, 1.0]


def test_a_program_of_pt2e() -> None:
    model = equal(onnxsmith.export(pt2e(Pictures(), picture), picture()))
    assert weights(model) <= NARROW
    assert kinds(model)["Clip"] == 0


def test_a_program_of_7_bits_has_clips() -> None:
    model = equal(onnxsmith.export(pt2e(Pictures(), picture, reduce_range=True), picture()))
    assert kinds(model)["Clip"] == kinds(model)["QuantizeLinear"] > 0


def test_a_program_that_chooses_scales_at_run_time() -> None:
    model = equal(onnxsmith.export(pt2e(linear(), rows, is_dynamic=True), rows()))
    assert weights(model) <= NARROW


def test_a_plain_program_of_torch_export_is_exported() -> None:
    program = torch.export.export(Pictures().eval(), picture()).module()
    equal(onnxsmith.export(program, picture()))
