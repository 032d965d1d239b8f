"""The common base of `all` and `any`, which are equal for a 0-d tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class TruthOfNumber(Translation):
    """Whether the number is not zero. Leaves tensors with axes to PyTorch's exporter."""

    def decompose(self, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.dim():
            return NotImplemented
        return (x != 0).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)

    def samples(self) -> Iterator[Sample]:
        _, along, along_several = self.targets
        yield Sample((torch.tensor(2.5),))
        yield Sample((torch.tensor(0), 0, True), {}, along)
        yield Sample((torch.tensor(True), [0]), {}, along_several)
        yield Sample((torch.tensor(3, dtype=torch.uint8), -1), {}, along)
        yield Sample((torch.randn(3, 4) > 0, 1), {}, along, dynamic={0: {0: "n"}})
