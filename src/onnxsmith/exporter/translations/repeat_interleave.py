"""`repeat_interleave` by a number: each element as often, along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class RepeatInterleave(Translation):
    """An axis of the repeats behind the axis, merged with it. All sizes are named, so that open axes of size 0 keep
    their places, and the simplification finds an upsampling. PyTorch's exporter (onnxscript 0.7.2) repeats the wrong
    axis if the number is a size of another tensor."""

    targets = ("aten::repeat_interleave.self_int",)

    def decompose(self, x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
        del output_size
        if dim is None:
            x, dim = x.reshape(-1), 0
        if not isinstance(repeats, int | torch.SymInt) or x.dim() == 0:
            return NotImplemented
        dim %= x.dim()
        shape = list(x.shape)
        wide = x.unsqueeze(dim + 1).expand([*shape[: dim + 1], repeats, *shape[dim + 1 :]])
        return wide.reshape([*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]])

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 4)
        for dim in (0, 1, -1, None):
            yield Sample((x, 2), {"dim": dim})
        yield Sample((x, 0, 1))
        for along in (by_rows_first, by_rows_last):
            dynamic = {0: {0: "n"}, 1: {0: "rows"}}
            yield Sample((torch.randn(2, 3), torch.randn(4, 1)), dynamic=dynamic, around=along)
        yield Sample((x, 3, 1), dynamic={0: {0: "n", 1: "m", 2: "l"}})
        yield Sample((torch.arange(6).reshape(2, 3), 2, 1), dynamic={0: {1: "m"}})


def by_rows_first(op: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
    """Repeats the first axis of x as often as `other` has rows: a number that is symbolic in a trace."""
    return op(x, other.shape[0], 0)


def by_rows_last(op: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
    """The same along the last axis."""
    return op(x, other.shape[0], -1)
