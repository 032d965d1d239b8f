"""`aminmax`: the least and the greatest element at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Aminmax(Translation):
    """`amin` and `amax`, along one axis or all. A number is its own least and greatest."""

    targets = ("aten::aminmax",)

    def decompose(self, x: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone(), x.clone()
        axes = list(range(x.dim())) if dim is None else [dim]
        return x.amin(axes, keepdim), x.amax(axes, keepdim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x,), {"dim": -2, "keepdim": True}, dynamic={0: {0: "n"}})
        yield Sample((x,), {"keepdim": True})
        yield Sample((torch.randint(-9, 9, (3, 4)),), {"dim": 0})
        yield Sample((torch.tensor(2.5),))
        yield Sample((torch.tensor(2.5),), {"dim": 0})
