"""`multilabel_margin_loss`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class MultilabelMarginLoss(Translation):
    """Over the classes j before the first -1 of a row of targets, and every i that is none of them: the sum of
    max(0, 1 - (x[j] - x[i])) / classes. PyTorch's own decomposition takes class 0 for each that is not there."""

    targets = ("aten::multilabel_margin_loss",)

    def decompose(self, x: Any, target: Any, reduction: int = 1) -> Any:
        rows, wanted = (one.reshape(-1, x.shape[-1] if x.dim() else 1) for one in (x, target))
        classes = torch.arange(rows.shape[1])
        first = torch.where(wanted == -1, classes, rows.shape[1]).amin(-1, keepdim=True)
        is_there = classes < first
        chosen = torch.where(is_there, wanted, 0)
        is_target = ((chosen.unsqueeze(-1) == classes) & is_there.unsqueeze(-1)).any(1)
        margins = (1 - rows.gather(1, chosen).unsqueeze(-1) + rows.unsqueeze(1)).clamp(min=0)
        counted = is_there.unsqueeze(-1) & ~is_target.unsqueeze(1)
        found = torch.where(counted, margins, torch.zeros((), dtype=x.dtype)).sum((1, 2)) / rows.shape[1]
        if reduction == 0:
            return found if x.dim() == 2 else found.reshape(())
        return found.mean() if reduction == 1 else found.sum()

    def samples(self) -> Iterator[Sample]:
        target = torch.tensor([[3, 0, -1, 1], [-1, 2, 1, 0], [2, 1, 0, 3]])
        for reduction in (0, 1, 2):
            yield Sample((torch.randn(3, 4), target, reduction))
        yield Sample((torch.randn(4), target[0]))
        yield Sample((torch.randn(4), target[1], 0))
        yield Sample((torch.randn(3, 4), target, 0), dynamic={0: {0: "n"}, 1: {0: "n"}})
