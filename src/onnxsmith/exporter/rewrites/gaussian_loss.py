"""nn.GaussianNLLLoss without its check for negative variances, which reads values."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where


class GaussianLoss(Rewrite):
    """The loss itself; eager PyTorch refuses a negative variance, the graph takes it for `eps`."""

    title = "nn.GaussianNLLLoss is without its check for negative variances"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_fits, module, _forward, stack)


def _fits(part: torch.nn.Module) -> bool:
    return type(part) is torch.nn.GaussianNLLLoss


def _forward(self: Any, input: torch.Tensor, target: torch.Tensor, var: Any) -> torch.Tensor:  # noqa: A002
    var = torch.full_like(input, var) if isinstance(var, float) else var
    if var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    var = var.clamp(min=self.eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if self.full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    means: dict[str, Any] = {"mean": torch.mean, "sum": torch.sum}
    result: torch.Tensor = means[self.reduction](loss) if self.reduction in means else loss
    return result
