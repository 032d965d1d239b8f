"""`amin` of a number, and along no axis in particular."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Amin(Translation):
    """The least element along every axis, where none is named; a number is its own. Else PyTorch's exporter."""

    targets = ("aten::amin",)

    def decompose(self, x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone()
        return NotImplemented if len(dim) else x.amin(list(range(x.dim())), keepdim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x, [], True))
        yield Sample((x, [0, -1]))
        yield Sample((torch.tensor(2.5), [0], True))
        yield Sample((torch.tensor(3),))
