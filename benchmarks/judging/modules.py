"""Torch modules whose export is right and whose rounding is awkward: coordinates, running sums, cancellation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as f


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


@dataclass(frozen=True)
class Case:
    """A module and its example inputs."""

    module: nn.Module
    args: tuple[Any, ...]


def _resize(size: tuple[int, int], to: tuple[int, int], mode: str, **more: Any) -> Case:
    options = {"align_corners": False, **more} if mode in ("bilinear", "bicubic") else more
    return Case(Calls(lambda x: f.interpolate(x, size=to, mode=mode, **options)), (torch.rand(1, 2, *size) * 4 - 1,))


def _scaled(size: tuple[int, int], factor: float, mode: str, **more: Any) -> Case:
    def call(x: torch.Tensor) -> torch.Tensor:
        return f.interpolate(x, scale_factor=factor, mode=mode, align_corners=more.get("align_corners", False))

    return Case(Calls(call), (torch.randn(1, 2, *size),))


def _grid(size: tuple[int, int], to: tuple[int, int], mode: str, padding: str, corners: bool) -> Case:
    grid = torch.rand(1, *to, 2) * 2.2 - 1.1

    def call(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return f.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=corners)

    return Case(Calls(call), (torch.randn(1, 2, *size), grid))


def _affine(size: int, corners: bool) -> Case:
    def call(x: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
        return f.grid_sample(x, f.affine_grid(theta, [1, 2, size, size], corners), align_corners=corners)

    theta = torch.tensor([[[0.9, 0.1, 0.05], [-0.1, 1.1, -0.02]]])
    return Case(Calls(call), (torch.randn(1, 2, size, size), theta))


class Normalized(nn.Module):
    """A norm of what is far from zero: variance after cancellation."""

    def __init__(self, norm: nn.Module, offset: float) -> None:
        super().__init__()
        self.norm, self.offset = norm, offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.offset)


def _norm(norm: nn.Module, shape: tuple[int, ...], offset: float) -> Case:
    return Case(Normalized(norm, offset), (torch.randn(*shape),))


def _softmax_loss() -> Case:
    def call(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return f.cross_entropy(x, target, weight=weight) - f.cross_entropy(x + 1e-3, target, weight=weight)

    return Case(Calls(call), (torch.randn(64, 10), torch.randint(0, 10, (64,)), torch.rand(10)))


def _deep(depth: int) -> Case:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(48, 48), nn.LayerNorm(48), nn.Tanh()]
    return Case(nn.Sequential(*layers), (torch.randn(3, 48),))


def _function(call: Callable[..., Any], *args: torch.Tensor) -> Case:
    return Case(Calls(call), args)


CASES: dict[str, Callable[[], Case]] = {
    "resize-33-513-bilinear": lambda: _resize((33, 33), (513, 513), "bilinear"),
    "resize-33-513-bicubic": lambda: _resize((33, 33), (513, 513), "bicubic"),
    "resize-33-513-corners": lambda: _resize((33, 33), (513, 513), "bilinear", align_corners=True),
    "resize-224-300-bilinear": lambda: _resize((224, 224), (300, 300), "bilinear"),
    "resize-224-300-bicubic": lambda: _resize((224, 224), (300, 300), "bicubic"),
    "resize-224-300-bicubic-corners": lambda: _resize((224, 224), (300, 300), "bicubic", align_corners=True),
    "resize-300-224-bilinear": lambda: _resize((300, 300), (224, 224), "bilinear"),
    "resize-517-1031-bilinear": lambda: _resize((3, 517), (3, 1031), "bilinear"),
    "resize-7-1999-bilinear": lambda: _resize((2, 7), (2, 1999), "bilinear"),
    "resize-1999-7-bilinear": lambda: _resize((2, 1999), (2, 7), "bilinear"),
    "resize-4096-3000-bicubic": lambda: _resize((2, 4096), (2, 3000), "bicubic"),
    "resize-13-29-nearest-exact": lambda: _resize((13, 13), (26, 39), "nearest"),
    "scale-1.7-bilinear": lambda: _scaled((31, 47), 1.7, "bilinear"),
    "scale-0.37-bilinear": lambda: _scaled((131, 247), 0.37, "bilinear"),
    "scale-2.3-bicubic": lambda: _scaled((41, 57), 2.3, "bicubic"),
    "scale-1.1-corners": lambda: _scaled((141, 257), 1.1, "bilinear", align_corners=True),
    **{
        f"grid-{size}-{mode}-{padding}-{'corners' if corners else 'edges'}": partial(
            _grid, (size, size), (37, 53), mode, padding, corners
        )
        for size in (33, 224)
        for mode in ("bilinear", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    },
    "affine-65": lambda: _affine(65, False),
    "affine-320-corners": lambda: _affine(320, True),
    "cumsum-1000": lambda: _function(lambda x: x.cumsum(-1), torch.randn(4, 1000)),
    "cumsum-20000": lambda: _function(lambda x: x.cumsum(-1), torch.randn(2, 20000)),
    "cumsum-of-cumsum": lambda: _function(lambda x: x.cumsum(-1).cumsum(-1), torch.randn(2, 500)),
    "cumsum-difference": lambda: _function(lambda x: x.cumsum(-1)[:, 1:] - x.cumsum(-1)[:, :-1], torch.randn(2, 3000)),
    "cumprod-64": lambda: _function(lambda x: x.cumprod(-1), torch.rand(4, 64) + 0.5),
    "sum-100000": lambda: _function(lambda x: x.sum(-1), torch.randn(2, 100000)),
    "mean-cancels": lambda: _function(lambda x: (x - x.mean(-1, keepdim=True)).sum(-1), torch.randn(4, 1000) + 100),
    "variance": lambda: _function(lambda x: x.var(-1), torch.randn(4, 500) + 30),
    "layernorm-100": lambda: _norm(nn.LayerNorm(256), (3, 256), 100.0),
    "layernorm-1000": lambda: _norm(nn.LayerNorm(256), (3, 256), 1000.0),
    "groupnorm-300": lambda: _norm(nn.GroupNorm(4, 16), (2, 16, 9, 9), 300.0),
    "instancenorm-300": lambda: _norm(nn.InstanceNorm2d(8), (2, 8, 11, 11), 300.0),
    "rmsnorm": lambda: _norm(nn.RMSNorm(128), (3, 128), 0.0),
    "loss-cancels": _softmax_loss,
    "logsumexp-difference": lambda: _function(lambda x: x.logsumexp(-1) - x.amax(-1), torch.randn(4, 300) * 20),
    "softmax-large": lambda: _function(lambda x: x.softmax(-1), torch.randn(4, 300) * 50),
    "exp-large": lambda: _function(lambda x: (x * 20).exp(), torch.randn(4, 300)),
    "sin-large": lambda: _function(lambda x: (x * 1000).sin(), torch.randn(4, 300)),
    "distance": lambda: _function(lambda x, y: torch.cdist(x, y), torch.randn(9, 64) + 9, torch.randn(7, 64) + 9),
    "cosine": lambda: _function(lambda x, y: f.cosine_similarity(x, y), torch.randn(9, 256), torch.randn(9, 256)),
    "matmul-2048": lambda: _function(lambda x, y: x @ y, torch.randn(4, 2048), torch.randn(2048, 8)),
    "pow-2.5": lambda: _function(lambda x: x**2.5, torch.rand(4, 300) * 30),
    "deep-20": lambda: _deep(20),
    "deep-60": lambda: _deep(60),
    "lstm": lambda: Case(nn.LSTM(16, 32, 2, batch_first=True), (torch.randn(2, 40, 16),)),
    "gru": lambda: Case(nn.GRU(16, 32, 1, batch_first=True, bidirectional=True), (torch.randn(2, 40, 16),)),
    "transformer": lambda: Case(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), (torch.randn(2, 11, 64),)),
    "attention": lambda: _function(f.scaled_dot_product_attention, *torch.randn(3, 2, 4, 17, 16).unbind()),
    "conv-transpose": lambda: Case(nn.ConvTranspose2d(6, 5, 3, 2, 1, 1), (torch.randn(2, 6, 13, 9),)),
    "conv-large-kernel": lambda: Case(nn.Conv2d(3, 4, 31, padding=15), (torch.randn(1, 3, 40, 40),)),
    "depthwise": lambda: Case(nn.Conv2d(24, 24, 5, groups=24, stride=2), (torch.randn(2, 24, 31, 29),)),
    "unfold-fold": lambda: _function(lambda x: f.fold(f.unfold(x, 3), (9, 9), 3), torch.randn(1, 2, 9, 9)),
    "adaptive-pool": lambda: Case(nn.AdaptiveAvgPool2d((5, 7)), (torch.randn(1, 3, 20, 28),)),
    "pixel-shuffle": lambda: Case(nn.PixelShuffle(3), (torch.randn(1, 18, 7, 5),)),
    "gelu-mish-silu": lambda: _function(lambda x: f.gelu(x) + f.mish(x) * f.silu(x), torch.randn(4, 300) * 4),
    "erfinv-like": lambda: _function(lambda x: torch.atanh(x.clamp(-0.999, 0.999)), torch.randn(4, 300)),
    "log1p-expm1": lambda: _function(lambda x: torch.log(1 + torch.exp(x) * 1e-4), torch.randn(4, 300)),
}


def build(name: str) -> Case:
    """The case of that name in eval mode, always with the same weights and inputs."""
    torch.manual_seed(0)
    if name in CASES:
        case = CASES[name]()
    else:
        from models.architectures import build as network

        found = network(name)
        case = Case(found.module, tuple(found.inputs.values()))
    case.module.eval()
    return case


def names() -> list[str]:
    """Cases of here, then the networks of `models/architectures.py`."""
    from models.architectures import ARCHITECTURES

    return [*CASES, *ARCHITECTURES]


def export(name: str, target: Path) -> Case:
    """Writes the module's file, if it is not there. Raises what torch.onnx.export raises."""
    case = build(name)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        written = target.with_suffix(".part.onnx")
        with torch.no_grad():
            torch.onnx.export(case.module, case.args, written, dynamo=True, external_data=False, verbose=False)
        written.rename(target)
    return case
