"""`bucketize`: the bucket that each value falls into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.searchsorted import search


class Bucketize(Translation):
    """`searchsorted` with its arguments the other way round."""

    targets = ("aten::bucketize.Tensor", "aten::bucketize.Scalar")

    def decompose(self, x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
        x = x if isinstance(x, torch.Tensor) else torch.full((), x, dtype=boundaries.dtype)
        found = search(boundaries, x, right)
        return found.to(torch.int32) if out_int32 else found

    def samples(self) -> Iterator[Sample]:
        boundaries = torch.tensor([1.0, 3.0, 3.0, 5.0])
        for right in (False, True):
            yield Sample((torch.tensor([[0.0, 1.0, 3.0], [4.0, 5.0, 9.0]]), boundaries), {"right": right})
            yield Sample((torch.randint(0, 9, (3, 4)), boundaries.long()), {"right": right, "out_int32": True})
        yield Sample((torch.randint(0, 9, (4,)), boundaries))
        yield Sample((3.0, boundaries), {}, "aten::bucketize.Scalar")
        yield Sample((torch.tensor(2.0), torch.arange(100.0)))
        yield Sample((torch.randn(3, 4), torch.linspace(-2, 2, 50)), dynamic={0: {0: "n"}})
