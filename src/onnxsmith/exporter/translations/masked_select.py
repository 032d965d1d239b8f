"""`masked_select`: the elements where a mask is true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class MaskedSelect(Translation):
    """Both are broadcast and laid flat; the places where the mask holds are read."""

    targets = ("aten::masked_select",)

    def decompose(self, x: Any, mask: Any) -> Any:
        x, mask = torch.ops.aten.broadcast_tensors([x, mask])
        x, mask = x.reshape(-1), mask.reshape(-1)
        if x.shape[0] == 1:  # torch takes two elements to be possible at the least
            mask = torch.cat([mask, torch.zeros_like(mask)])
        return x.index_select(0, mask.nonzero().squeeze(1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.rand(3, 4) > 0.5))
        yield Sample((torch.randint(0, 9, (3, 1)), torch.rand(4) > 0.5))
        yield Sample((torch.tensor(1.0), torch.tensor(True)))
        yield Sample((torch.randn(3), torch.zeros(3).bool()))
        yield Sample((torch.randn(3, 4), torch.rand(3, 4) > 0.5), dynamic={0: {0: "n"}, 1: {0: "n"}})
