"""Padding by the edge that takes places away on some side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ReplicationPad(Translation):
    """Each place is looked up, the nearest one that there is: an edge is that of the whole axis, also where places of
    it are taken away, and ONNX's Pad takes away first. Without a number below zero it is PyTorch's exporter's."""

    targets = ("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d")

    def decompose(self, x: Any, padding: Sequence[Any]) -> Any:
        if all(not isinstance(size, int) or size >= 0 for size in padding):
            return NotImplemented
        for axis, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True), 1):
            size = x.shape[-axis]
            places = torch.arange(-before, size + after, device=x.device).clamp(0, size - 1)
            x = x.index_select(-axis, places)
        return x

    def samples(self) -> Iterator[Sample]:
        one, two, three = self.targets
        x = torch.randn(2, 3, 5, 4)
        yield Sample((x[0], [-2, 3]), {}, one)
        yield Sample((x[0], [3, -5]), {}, one)
        yield Sample((x, [-1, -2, 1, -1]), {}, two)
        yield Sample((x, [1, 2, 0, 1]), {}, two)
        yield Sample((x, [-1, 2, 1, 0, -1, 1]), {}, three)
        yield Sample((x, [-1, 2, 1, -1]), {}, two, {0: {2: "height", 3: "width"}})
