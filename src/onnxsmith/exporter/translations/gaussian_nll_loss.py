"""`gaussian_nll_loss` without its check for negative variances, which reads values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.exporter.translations.base import Sample, Translation

_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"mean": torch.mean, "sum": torch.sum}


class GaussianNllLoss(Translation):
    """½ (log σ² + (x - y)² / σ²), with ½ log 2π when it is to be full. PyTorch refuses a negative variance, the graph
    takes it for `eps`."""

    targets = ()
    functions = (functional.gaussian_nll_loss,)

    def decompose(
        self,
        input: Any,  # noqa: A002
        target: Any,
        var: Any,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> Any:
        if not isinstance(var, torch.Tensor):
            var = torch.full_like(input, var)
        elif var.shape != input.shape and var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        var = var.clamp(min=eps)
        loss = 0.5 * (var.log() + (input - target) ** 2 / var)
        if full:
            loss = loss + 0.5 * math.log(2 * math.pi)
        return _REDUCTIONS[reduction](loss) if reduction in _REDUCTIONS else loss

    def samples(self) -> Iterator[Sample]:
        x, y, variance = torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3)
        for reduction in ("mean", "sum", "none"):
            yield Sample((x, y, variance), {"reduction": reduction, "full": reduction != "sum"})
        yield Sample((x, y, variance[:, 0]), {"eps": 0.5})
        yield Sample((x, y, 0.25))
        yield Sample((x, y, variance), dynamic={0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}})
