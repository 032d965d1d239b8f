"""Modules that were quantised in PyTorch come out with QuantizeLinear, DequantizeLinear and integer weights."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
import torch.ao.quantization as eager
import torch.ao.quantization.fx._decomposed  # defines the operators of quantized_decomposed
from torch import nn

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.exporter.graph import stored_integers
from onnxsmith.graph.files.load import load
from onnxsmith.viewer.inspection import explain

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning", "ignore:.*deprecated:DeprecationWarning")
NARROW = {ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT4, ir.DataType.UINT4}


@pytest.fixture(autouse=True)
def same_numbers() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):  # torch is about to drop torch.ao; models that have it are there
        yield


class Stubs(nn.Module):
    """A network for the eager workflow."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = eager.QuantStub(), eager.DeQuantStub()
        self.conv, self.relu, self.head = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.back(self.head(self.relu(self.conv(self.into(x))).mean((2, 3))))


class Residual(nn.Module):
    """A skip connection, which the FX workflow makes one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.up, self.pool = nn.ConvTranspose2d(4, 4, 2, stride=2), nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.a(x))
        x = torch.relu(self.b(x) + x)
        return torch.cat([self.up(self.pool(x)), x], 1).flatten(1)


def picture() -> tuple[torch.Tensor]:
    return (torch.randn(2, 3, 8, 8),)


def rows() -> tuple[torch.Tensor]:
    return (torch.randn(4, 64),)


def static() -> nn.Module:
    module = Stubs().eval()
    module.qconfig = eager.get_default_qconfig("x86")
    prepared = eager.prepare(eager.fuse_modules(module, [["conv", "relu"]]))
    prepared(*picture())
    return eager.convert(prepared)


def prepared_for_training() -> nn.Module:
    module = Stubs().train()
    module.qconfig = eager.get_default_qat_qconfig("x86")
    prepared = eager.prepare_qat(module)
    prepared(*picture())
    return prepared.eval()


def trained() -> nn.Module:
    return prepared_for_training().apply(eager.disable_observer)


def dynamic() -> nn.Module:
    return eager.quantize_dynamic(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)).eval(), {nn.Linear})


def fx(*, reference: bool) -> nn.Module:
    from torch.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx

    mapping = eager.get_default_qconfig_mapping("x86").set_object_type(
        nn.ConvTranspose2d, eager.get_default_qconfig("qnnpack")
    )
    made = prepare_fx(Residual().eval(), mapping, picture())
    made(*picture())
    return (convert_to_reference_fx if reference else convert_fx)(made).eval()


def equal(result: Result) -> ir.Model:
    differs = [check for check in result.report.part(Verification).outputs if not check.equal]
    assert result.report.verdict in (Verdict.DONE, Verdict.CANNOT_TELL), (result.report.headline, differs)
    assert not result.report.part(Capture).tried
    assert result.model is not None
    return result.model


def weights(model: ir.Model) -> set[ir.DataType]:
    """The dtypes of what has the rank of a weight."""
    given = [one.const_value for one in model.graph.initializers.values() if one.const_value is not None]
    return {one.dtype for one in given if len(one.shape) >= 2 and one.size > 32}


def kinds(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph)


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (static, picture),
        (trained, picture),
        (dynamic, rows),
        (lambda: fx(reference=False), picture),
        (lambda: fx(reference=True), picture),
    ],
    ids=["static", "fake quantizers", "dynamic", "fx", "fx reference"],
)
def test_a_module_of_torch_ao_keeps_its_integers(
    make: Callable[[], nn.Module], inputs: Callable[[], Any], tmp_path: Path
) -> None:
    """On a processor without VNNI PyTorch's own products may saturate; then the check cannot tell."""
    save = onnxsmith.Save(write_unsure=True)
    model = equal(onnxsmith.export(make(), inputs(), output=tmp_path / "model.onnx", save=save))
    assert weights(model) <= NARROW
    assert kinds(model)["DequantizeLinear"] >= 2
    assert "Gemm" not in kinds(model)


def test_every_batch_size() -> None:
    result = onnxsmith.export(static(), picture(), dynamic={"x": {0: "batch"}})
    assert weights(equal(result)) <= NARROW
    assert len(result.report.part(Verification).sizes["batch"]) > 1


def test_a_module_is_left_as_it_was() -> None:
    module = static()
    before = {name: dict(vars(part)) for name, part in module.named_modules()}
    onnxsmith.export(module, picture())
    assert {name: dict(vars(part)) for name, part in module.named_modules()} == before


def refused(module: nn.Module, inputs: Any) -> Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, inputs)
    return caught.value.problem


def test_observers_that_are_on() -> None:
    problem = refused(prepared_for_training(), picture())
    assert problem.id == "export/observers-on"
    assert problem.where == "into.activation_post_process"
    module = prepared_for_training()
    exec(problem.fix.partition(": ")[2], {"model": module, "torch": torch})
    equal(onnxsmith.export(module, picture()))


class Odd(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))[0].dequantize()


def test_a_function_without_a_translation_is_named() -> None:
    problem = refused(Odd(), (torch.randn(4, 5),))
    assert problem.id == "export/quantized-module"
    assert "sort of a quantized tensor" in problem.what


class Ranged(nn.Module):
    """Quantises to 7 bits of 8."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = (0.05, 10, 0, 127, torch.uint8)
        ops = torch.ops.quantized_decomposed
        return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *given), *given)


def test_a_narrow_range_is_not_widened() -> None:
    x = torch.linspace(-20, 20, 64).reshape(2, 32)
    model = equal(onnxsmith.export(Ranged(), (x,)))
    assert kinds(model) == {"QuantizeLinear": 1, "Clip": 1, "DequantizeLinear": 1}


class Groups(nn.Module):
    """A linear layer of 4 bits with a scale for each group of 32."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-8, 8, (16, 64), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(16, 2) + 0.5)
        self.register_buffer("zero", torch.randint(-3, 3, (16, 2), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.ops.quantized_decomposed.dequantize_per_channel_group(
            self.weight, self.scale, self.zero, -8, 7, torch.int8, 32, torch.float32
        )
        return nn.functional.linear(x, found)


def test_groups_of_4_bits_are_stored_in_4_bits(tmp_path: Path) -> None:
    result = onnxsmith.export(Groups(), rows(), output=tmp_path / "groups.onnx")
    model = load(tmp_path / "groups.onnx")
    assert equal(result).opset_imports[""] == 21
    weight = model.graph.initializers["weight"].const_value
    assert (weight.dtype, list(weight.shape)) == (ir.DataType.INT4, [64, 16])
    (node,) = [node for node in model.graph if node.op_type == "DequantizeLinear"]
    assert (node.attributes["axis"].as_int(), node.attributes["block_size"].as_int()) == (0, 32)
    assert (tmp_path / "groups.onnx").stat().st_size < 64 * 16 * 4


@pytest.mark.parametrize("opset", [13, 17, 20])
def test_groups_before_opset_21_are_rows(opset: int) -> None:
    model = equal(onnxsmith.export(Groups(), rows(), opset=opset))
    assert model.opset_imports[""] == opset
    assert weights(model) == {ir.DataType.INT8}


def test_a_wrong_scale_is_seen_although_onnxruntime_quantises_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's MatMulNBits errs by more than this; without its optimisations, the file is held to rounding."""
    right = stored_integers._Weight.transposed

    def wrong(self: Any) -> Any:
        made = right(self)
        return type(made)(made.numbers, made.scale * np.float32(1.005), made.zero, made.axis, made.block)

    monkeypatch.setattr(stored_integers._Weight, "transposed", wrong)
    result = onnxsmith.export(Groups(), rows(), strategy="torch-export")
    assert result.report.verdict is Verdict.DIFFERENT


def test_the_report_says_what_onnxruntime_adds() -> None:
    result = onnxsmith.export(Groups(), rows())
    assert any("MatMulNBits" in note for note in result.report.part(Verification).notes)


class Packed(nn.Module):
    """A linear layer of 4 bits as GPTQ packs it: eight numbers in an int32, in plain operators of torch."""

    def __init__(self, size: int, wide: int, group: int = 32) -> None:
        super().__init__()
        numbers = torch.randint(0, 16, (size, wide), dtype=torch.int32)
        self.register_buffer("qweight", sum(numbers[i::8] << (4 * i) for i in range(8)).to(torch.int32))
        self.register_buffer("scales", torch.rand(size // group, wide) * 0.1)
        self.register_buffer("g_idx", torch.arange(size) // group)
        self.register_buffer("shifts", torch.arange(0, 32, 4, dtype=torch.int32)[None, :, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers = torch.bitwise_right_shift(self.qweight[:, None], self.shifts) & 15
        return x @ (self.scales[self.g_idx] * (numbers.reshape(-1, numbers.shape[2]) - 8))


def test_weights_packed_in_plain_operators_are_exported_with_a_note() -> None:
    result = onnxsmith.export(nn.Sequential(Packed(64, 16)), rows())
    equal(result)
    assert any("packed weights of '0'" in note for note in result.report.part(Capture).notes)


@torch.library.custom_op("packed::product", mutates_args=())
def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


@product.register_fake
def _(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[1])


class Kernel(Packed):
    """The same with a kernel that is no operator of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return product(x, super().forward(torch.eye(self.g_idx.numel())))


def test_packed_weights_with_own_kernels_are_named_and_the_page_helps() -> None:
    module = nn.Sequential(Kernel(64, 32), nn.ReLU(), Kernel(32, 16))
    problem = refused(module, rows())
    assert problem.id == "export/packed-weights"
    assert problem.where == "0"
    assert "GPTQ" in problem.what
    assert "1 weight more" in problem.what
    names: dict[str, Any] = {}
    code = re.search(r"```python\n(.*?)```", explain.pages()["export/packed-weights"], re.DOTALL)
    assert code is not None
    exec(code[1], names)
    wanted = module(*rows())
    found = names["dequantized"](module)
    assert found is module
    assert [type(part).__name__ for part in module] == ["Linear", "ReLU", "Linear"]
    equal(onnxsmith.export(module, rows()))
    assert wanted.shape == module(*rows()).shape


class Linear4bit(nn.Module):
    """A class of bitsandbytes, as far as it is looked at."""

    __module__ = "bitsandbytes.nn.modules"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64, 64, dtype=torch.uint8), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return product(x, self.weight.float())


def test_a_class_of_bitsandbytes_is_named() -> None:
    problem = refused(nn.Sequential(Linear4bit()), rows())
    assert problem.id == "export/packed-weights"
    assert "bitsandbytes.nn.modules.Linear4bit" in problem.what


class LargeProducts(nn.Module):
    """A convolution with 8-bit weights and activations that use their whole range."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-127, 128, (8, 4, 3, 3)).float() * 0.01, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.fake_quantize_per_tensor_affine(x, 0.01, 0, 0, 255)
        weight = torch.fake_quantize_per_tensor_affine(self.weight, 0.01, 0, -128, 127)
        return torch.fake_quantize_per_tensor_affine(nn.functional.conv2d(x, weight), 0.3, 128, 0, 255)


def test_products_that_saturate_on_some_processors_do_not_refuse_a_file() -> None:
    """The headline says how to run it there; a processor with VNNI has nothing to say."""
    result = onnxsmith.export(LargeProducts(), (torch.rand(1, 4, 9, 9) * 2.5,))
    assert result.report.verdict is Verdict.DONE
    file = Path("/proc/cpuinfo")
    flags = file.read_text(encoding="utf-8") if file.exists() else ""
    if "avx2" in flags and "vnni" not in flags:
        assert "session.x64quantprecision=1" in result.report.headline
