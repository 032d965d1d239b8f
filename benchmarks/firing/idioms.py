"""Small modules with a form that a named package has: rules for it are seldom met by whole models of a few layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

IMAGE, ROWS = {0: "batch", 2: "height", 3: "width"}, {0: "batch"}


class Of(nn.Module):
    """A function of an input, with modules that it calls."""

    def __init__(self, function: Callable[..., Any], *modules: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(*self.parts, x)


class Router(nn.Module):
    """A forward that converts one of its modules, which has that dtype already."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.classifier = self.classifier.to(torch.float32)
        return self.classifier(x).softmax(-1)


def _flux(x: torch.Tensor) -> Any:
    qkv, mlp = x.split([12, 8], -1)
    gate, up = mlp.chunk(2, -1)
    return [part.tanh() for part in qkv.chunk(3, -1)] + [functional.silu(gate) * up]


def _windows(x: torch.Tensor) -> torch.Tensor:
    return functional.pad(x, (0, 0, 0, (4 - x.shape[3] % 4) % 4))


def _shuffled(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1, 1, 2, 2, 8, 8).permute(0, 1, 4, 2, 5, 3).reshape(-1, 1, 16, 16)


Idiom = tuple[nn.Module, torch.Tensor, dict[int, str]]


def idioms() -> dict[str, Idiom]:
    """The modules by the name of the form and of a package that has it, with an input and its dynamic axes."""
    torch.manual_seed(0)
    image, rows = torch.rand(2, 4, 8, 8), torch.rand(3, 8)
    found: dict[str, Idiom] = {
        "repeated rows and columns (kornia, YUV 4:2:0)": (
            Of(lambda x: x.repeat_interleave(2, -1).repeat_interleave(2, -2)), image, IMAGE
        ),
        "Linear and BatchNorm1d (PointNet)": (
            Of(lambda linear, norm, x: norm(linear(x)), nn.Linear(8, 5), nn.BatchNorm1d(5)), rows, ROWS
        ),
        "chunks of a split (diffusers, Flux2)": (Of(_flux), torch.rand(2, 3, 20), {0: "batch"}),
        "a resize to the same size (transformers, SegFormer)": (
            Of(lambda x: functional.interpolate(x, size=x.shape[2:], mode="bilinear")), image, IMAGE
        ),
        "pixel shuffle by views (basicsr)": (Of(_shuffled), image, {}),
        "ReLU, then an upper bound (TensorFlow, ReLU6)": (
            Of(lambda x: functional.relu(x).clamp(max=6)), image, IMAGE
        ),
        "a hard sigmoid by ReLU6 (MobileNetV3)": (Of(lambda x: functional.relu6(x + 3) / 6), image, IMAGE),
        "an activation between transposes (tf2onnx, channels last)": (
            Of(lambda x: x.permute(0, 2, 3, 1).relu().permute(0, 3, 1, 2)), image, IMAGE
        ),
        "windows that need no pad (transformers, Swin)": (Of(_windows), image, {}),
        "a concatenation of one tensor (torchvision, DenseNet)": (Of(lambda x: torch.cat([x], 1).relu()), image, IMAGE),
        "a converted classifier (transformers, Switch)": (Router(), rows, ROWS),
        "indices of a triangle (DLRM)": (
            Of(lambda x: (x @ x.transpose(1, 2))[:, *torch.tril_indices(4, 4, -1)]), torch.rand(2, 4, 8), {0: "batch"}
        ),
        "a distribution (pyro)": (Of(lambda x: torch.distributions.Normal(x, x.exp()).log_prob(x * 2)), rows, ROWS),
    }  # fmt: skip
    try:
        from timm.layers import AvgPool2dSame
        from timm.layers.pool2d_same import MaxPool2dSame
    except ImportError:
        return found
    same = {"an average pool that pads (timm, SAME)": AvgPool2dSame, "a pool that pads (timm, SAME)": MaxPool2dSame}
    return found | {name: (Of(lambda pool, x: pool(x), kind(3, 2)), image, {}) for name, kind in same.items()}
