"""Networks as a user quantises them in PyTorch: PT2E, torchao's `quantize_`, and the modules of torch.ao."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization as eager
from torch import nn

Network = tuple[nn.Module, tuple[Any, ...]]
IMAGE = (1, 3, 16, 16)


class Pictures(nn.Module):
    """Convolutions with batch normalisation, a skip connection, and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.skip = nn.Conv2d(16, 32, 1)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.head(torch.relu(self.body(x) + self.skip(x)).mean((2, 3)))


class Rows(nn.Module):
    """Two linear layers."""

    def __init__(self, size: int = 64) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, 128), nn.Linear(128, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Words(nn.Module):
    """An embedding, an attention layer, and logits."""

    def __init__(self, size: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(100, size)
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(size), nn.Linear(size, 100)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        made = nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))
        return self.out(self.norm(x + made))


class Stubs(nn.Module):
    """A network for the eager workflow, with the places where it is quantised."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = eager.QuantStub(), eager.DeQuantStub()
        self.conv, self.relu, self.head = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.back(self.head(self.relu(self.conv(self.into(x))).mean((2, 3))))


def picture() -> tuple[torch.Tensor]:
    return (torch.randn(IMAGE),)


def rows() -> tuple[torch.Tensor]:
    return (torch.randn(4, 64),)


def words() -> tuple[torch.Tensor]:
    return (torch.randint(0, 100, (2, 12)),)


def pt2e(module: nn.Module, inputs: Callable[[], Any], quantizer: Any, **options: Any) -> Network:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    prepared = prepare_pt2e(torch.export.export(module.eval(), inputs()).module(), quantizer)
    for _ in range(4):
        prepared(*inputs())
    return convert_pt2e(prepared, **options), inputs()


def x86(**options: Any) -> Any:
    import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as quantizer

    return quantizer.X86InductorQuantizer().set_global(
        quantizer.get_default_x86_inductor_quantization_config(**options)
    )


def xnnpack(**options: Any) -> Any:
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))


def torchao(module: nn.Module, inputs: Callable[[], Any], config: str, *only: type, **options: Any) -> Network:
    import torchao.quantization as quantization

    kinds = only or (nn.Linear,)
    chosen = getattr(quantization, config)(**options)
    quantization.quantize_(module.eval(), chosen, filter_fn=lambda part, _: isinstance(part, kinds))
    return module, inputs()


def groups(size: int) -> Any:
    from torchao.quantization import PerGroup

    return PerGroup(size)


def channels() -> Any:
    from torchao.quantization import PerAxis

    return PerAxis(0)


def qat_pt2e() -> Network:
    from torchao.quantization import pt2e as tools
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

    program = torch.export.export(Pictures().train(), (torch.randn(4, 3, 16, 16),)).module()
    prepared = prepare_qat_pt2e(program, xnnpack(is_per_channel=True, is_qat=True))
    for _ in range(3):
        prepared(torch.randn(4, 3, 16, 16))
    tools.move_exported_model_to_eval(prepared)
    return convert_pt2e(prepared), (torch.randn(4, 3, 16, 16),)


def eager_static() -> Network:
    module = Stubs().eval()
    module.qconfig = eager.get_default_qconfig("x86")
    prepared = eager.prepare(eager.fuse_modules(module, [["conv", "relu"]]))
    prepared(*picture())
    return eager.convert(prepared), picture()


def eager_dynamic() -> Network:
    return eager.quantize_dynamic(Rows().eval(), {nn.Linear}), rows()


def eager_qat() -> Network:
    module = Stubs().train()
    module.qconfig = eager.get_default_qat_qconfig("x86")
    prepared = eager.prepare_qat(module)
    prepared(*picture())
    prepared.apply(eager.disable_observer)
    return prepared.eval(), picture()


def fx(reference: bool) -> Network:
    from torch.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx

    prepared = prepare_fx(Pictures().eval(), eager.get_default_qconfig_mapping("x86"), picture())
    prepared(*picture())
    return (convert_to_reference_fx if reference else convert_fx)(prepared).eval(), picture()


NETWORKS: dict[str, Callable[[], Network]] = {
    "PT2E, X86Inductor, static": lambda: pt2e(Pictures(), picture, x86()),
    "PT2E, X86Inductor, 7 bits": lambda: pt2e(Pictures(), picture, x86(reduce_range=True)),
    "PT2E, X86Inductor, dynamic": lambda: pt2e(Rows(), rows, x86(is_dynamic=True)),
    "PT2E, X86Inductor, attention": lambda: pt2e(Words(), words, x86()),
    "PT2E, XNNPACK, per channel": lambda: pt2e(Pictures(), picture, xnnpack(is_per_channel=True)),
    "PT2E, XNNPACK, per tensor": lambda: pt2e(Pictures(), picture, xnnpack(is_per_channel=False)),
    "PT2E, XNNPACK, dynamic": lambda: pt2e(Rows(), rows, xnnpack(is_per_channel=True, is_dynamic=True)),
    "PT2E, XNNPACK, weights not folded": lambda: pt2e(
        Pictures(), picture, xnnpack(is_per_channel=True), fold_quantize=False
    ),
    "PT2E, XNNPACK, after training (QAT)": qat_pt2e,
    "torchao, int8 weights": lambda: torchao(Rows(), rows, "Int8WeightOnlyConfig"),
    "torchao, int8 weights, attention": lambda: torchao(Words(), words, "Int8WeightOnlyConfig"),
    "torchao, int8 dynamic": lambda: torchao(Rows(), rows, "Int8DynamicActivationInt8WeightConfig"),
    "torchao, int4 weights, groups of 32": lambda: torchao(
        Rows(), rows, "IntxWeightOnlyConfig", weight_dtype=torch.int4, granularity=groups(32)
    ),
    "torchao, int4 embedding": lambda: torchao(
        Words(), words, "IntxWeightOnlyConfig", nn.Embedding, weight_dtype=torch.int4, granularity=groups(32)
    ),
    "torchao, int8 per channel (intx)": lambda: torchao(
        Rows(), rows, "IntxWeightOnlyConfig", weight_dtype=torch.int8, granularity=channels()
    ),
    "torchao, int8 dynamic, int4 weights": lambda: torchao(
        Rows(), rows, "Int8DynamicActivationIntxWeightConfig", weight_dtype=torch.int4, weight_granularity=groups(32)
    ),
    "torch.ao, eager, static": eager_static,
    "torch.ao, eager, dynamic": eager_dynamic,
    "torch.ao, eager, fake quantizers (QAT)": eager_qat,
    "torch.ao, FX": lambda: fx(reference=False),
    "torch.ao, FX, reference": lambda: fx(reference=True),
}


def build(name: str) -> Network:
    """The network of this name, made from the same random numbers each time."""
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):  # torch is about to drop torch.ao; models that have it are there
        return NETWORKS[name]()
