"""`resize_` and `resize_as_`: the elements in memory under another shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Resize(Translation):
    """The first elements, and where more are asked for, any: 0 here."""

    targets = ("aten::resize", "aten::resize_as")

    def decompose(self, x: Any, size: Any, *, memory_format: Any = None) -> Any:
        del memory_format
        shape = list(size.shape if isinstance(size, torch.Tensor) else size)
        have, want = math.prod(x.shape), math.prod(shape)
        flat = x.reshape(-1)
        if have == want:
            return x.clone() if list(x.shape) == shape else x.reshape(shape)
        if want < have:
            return flat.narrow(0, 0, want).reshape(shape)
        return torch.cat([flat, torch.zeros((want - have,), dtype=x.dtype)]).reshape(shape)

    def samples(self) -> Iterator[Sample]:
        for shape in ([3, 4], [2, 6], [5], [], [0, 3]):
            yield Sample((torch.randn(3, 4), shape))
        yield Sample((torch.randn(3, 4), torch.randn(2, 3)), {}, "aten::resize_as")
