"""`nanmedian`: the median of the elements that are not NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.median import calls, middle


class Nanmedian(Translation):
    """The lower of the two middle elements that are numbers; NaN where there are none."""

    targets = ("aten::nanmedian", "aten::nanmedian.dim")

    def decompose(self, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        return middle(x, dim, keepdim, skip_nan=True)

    def samples(self) -> Iterator[Sample]:
        yield from calls("aten::nanmedian", "aten::nanmedian.dim")
        x = torch.tensor([[1.0, float("nan"), 0.0, float("nan")], [4.0, 3.0, 2.0, 1.0], [float("nan")] * 3 + [1.0]])
        yield Sample((x,), {}, "aten::nanmedian")
        yield Sample((x, 1), {}, "aten::nanmedian.dim")
        yield Sample((torch.full((3,), float("nan")),), {}, "aten::nanmedian")
