"""`segment_reduce`: segments of an axis, each reduced to one element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scattering import scattered
from onnxsmith.exporter.translations.base import Sample, Translation

_HOW = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}
_BEGIN = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -float("inf"), "min": float("inf")}


class SegmentReduce(Translation):
    """The number of segments that end at or before a place is the segment that it belongs to; all are scattered there.
    An empty segment is `initial`, or what a reduction of nothing is: NaN for the mean."""

    targets = ("aten::segment_reduce",)

    def decompose(
        self, x: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
        unsafe: bool = False, initial: Any = None,
    ) -> Any:  # fmt: skip
        if indices is not None or (lengths is None) == (offsets is None):
            return NotImplemented
        del unsafe
        axis %= x.dim()
        if lengths is None:
            ends = offsets.narrow(-1, 1, offsets.shape[-1] - 1)
            lengths = offsets.diff(dim=-1)
        else:
            ends = lengths.cumsum(-1)
        places = torch.arange(x.shape[axis])
        segment = (ends.unsqueeze(-2) <= places.unsqueeze(-1)).sum(-1)
        beyond = x.dim() - axis - 1
        segment = segment.reshape([*segment.shape, *(1,) * beyond]).expand(x.shape)
        sizes = [*x.shape[:axis], lengths.shape[-1], *x.shape[axis + 1 :]]
        begun = torch.full(sizes, _BEGIN[reduce] if initial is None else initial, dtype=x.dtype)
        found = scattered(begun, axis, segment, x, _HOW[reduce]) if x.numel() else begun
        if reduce != "mean":
            return found
        count = lengths.reshape([*lengths.shape, *(1,) * beyond]).to(x.dtype)
        return found / count if initial is None else torch.where(count > 0, found / count, found)

    def samples(self) -> Iterator[Sample]:
        for how in _HOW:
            for initial in (None, 1.5):
                lengths = {"lengths": torch.tensor([2, 0, 3, 1]), "initial": initial}
                yield Sample((torch.randn(6, 3), how), lengths)
                offsets = {"offsets": torch.tensor([[0, 2, 2, 5], [0, 1, 4, 5]]), "axis": 1, "initial": initial}
                yield Sample((torch.randn(2, 5, 3, dtype=torch.float64), how), offsets)
            yield Sample((torch.randn(6, 3), how), {"lengths": torch.tensor([2, 4])}, dynamic={0: {1: "n"}})
