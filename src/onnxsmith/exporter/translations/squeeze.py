"""`squeeze` of axes that may not be 1 long; such axes stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Squeeze(Translation):
    """Removes only axes of length 1. Leaves the plain case, one such axis, to PyTorch's exporter."""

    targets = ("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")

    def decompose(self, x: Any, dim: Any = None) -> Any:
        dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
        gone = sorted({axis % x.dim() for axis in dims if x.dim() and x.shape[axis] == 1}, reverse=True)
        if isinstance(dim, int) and gone:
            return NotImplemented
        if not gone:
            return x.clone()
        for axis in gone:
            x = x.squeeze(axis)
        return x

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(1, 3, 1, 2, 1)
        yield Sample((x,), {}, "aten::squeeze.default")
        yield Sample((torch.tensor(1.0),), {}, "aten::squeeze.default")
        for dim in (0, 1, -1, -2):
            yield Sample((x, dim), {}, "aten::squeeze.dim")
        yield Sample((torch.tensor(1.0), 0), {}, "aten::squeeze.dim")
        for dims in ([0, 1, -1], [], [1, 3], [-3]):
            yield Sample((x, dims), {}, "aten::squeeze.dims")
        yield Sample((torch.tensor(1.0), [0]), {}, "aten::squeeze.dims")
        yield Sample((torch.randn(2, 1, 3), [1, 2]), {}, "aten::squeeze.dims", {0: {0: "n"}})
        yield Sample((torch.randn(2, 1, 3), 2), {}, "aten::squeeze.dim", {0: {0: "n"}})
