"""`sort`, stable or not, which `argsort` and `msort` are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._order import order
from onnxsmith.exporter.translations.base import Sample, Translation


class Sort(Translation):
    """The sorted values and their indices. Always stable; PyTorch's sort is stable only on request, so the indices of
    equal elements may differ in long rows."""

    targets = ("aten::sort", "aten::sort.stable")

    def decompose(self, x: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
        del stable
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64)
        indices = order(x, dim, descending)
        return x.gather(dim, indices), indices

    def samples(self) -> Iterator[Sample]:
        special = torch.tensor([[2.0, float("nan"), 1.0, float("inf"), float("nan"), -float("inf"), 2.0, -0.0]])
        for descending in (False, True):
            yield Sample((special, -1, descending))
            yield Sample((torch.randint(0, 3, (4, 5)), 0, descending))
            yield Sample((torch.randint(0, 3, (4, 5)).bool(), 1, descending))
            yield Sample((torch.randn(3, 5), 0, descending), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(0, 255, (7,), dtype=torch.uint8),))
        yield Sample((torch.randn(3, 4, dtype=torch.float64),))
        yield Sample((torch.tensor(2.0),))
        yield Sample((torch.randn(3, 0),))
        yield Sample((torch.randint(0, 3, (9,)),), {"stable": True, "dim": 0, "descending": True}, "aten::sort.stable")
