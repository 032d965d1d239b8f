"""`repeat_interleave` by a number: each element as often, along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class RepeatInterleave(Translation):
    """An axis of the repeats behind the axis, merged with it. All sizes are named, so that open axes of size 0 keep
    their places, and the simplification finds an upsampling."""

    targets = ("aten::repeat_interleave.self_int",)

    def decompose(self, x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
        del output_size
        if dim is None:
            x, dim = x.reshape(-1), 0
        if not isinstance(repeats, int) or x.dim() == 0:
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
        yield Sample((x, 3, 1), dynamic={0: {0: "n", 1: "m", 2: "l"}})
        yield Sample((torch.arange(6).reshape(2, 3), 2, 1), dynamic={0: {1: "m"}})
