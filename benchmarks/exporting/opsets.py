"""Opsets that are asked for: layers that everyone uses, at each from 9 to 23. Refused is honest, changed is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import nn

from exporting.suite import Call

OPSETS = range(9, 24)


class _Of(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.name == "interpolate":
            return nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        if self.name == "reductions":
            return x.sum(1) + x.mean(1) + x.amax(1)
        if self.name == "slices":
            return torch.cat([x[:, :1], x[:, 1:].flip(1)], 1)
        if self.name == "grid":
            return nn.functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False)
        return nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")


@cache
def _modules() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    image = torch.rand(2, 4, 6, 6)
    found: dict[str, tuple[nn.Module, torch.Tensor]] = {
        "linear": (nn.Linear(4, 3), torch.rand(2, 4)),
        "conv": (nn.Conv2d(4, 3, 3), image),
        "batch norm": (nn.BatchNorm2d(4), image),
        "layer norm": (nn.LayerNorm(6), image),
        "group norm": (nn.GroupNorm(2, 4), image),
        "gelu": (nn.GELU(), image),
        "hardswish": (nn.Hardswish(), image),
        "softmax": (nn.Softmax(1), image),
        "max pool": (nn.MaxPool2d(2), image),
        "attention": (nn.TransformerEncoderLayer(8, 2, batch_first=True), torch.rand(2, 5, 8)),
        "lstm": (nn.LSTM(4, 3), torch.rand(5, 2, 4)),
        "embedding": (nn.Embedding(10, 4), torch.randint(0, 10, (2, 5))),
    }
    found |= {name: (_Of(name), image) for name in ("interpolate", "reductions", "slices", "grid", "pad")}
    return {name: (module.eval(), example) for name, (module, example) in found.items()}


def names() -> list[str]:
    """Every layer at every opset."""
    return [f"{name} {opset}" for name in _modules() for opset in OPSETS]


def calls(name: str) -> Iterator[Call]:
    """The one call of a case."""
    layer, _, opset = name.rpartition(" ")
    torch.manual_seed(0)
    module, example = _modules()[layer]
    yield Call("0", module, (example,), opset=int(opset))
