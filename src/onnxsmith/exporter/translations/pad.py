"""Padding by the edge that takes places away on some side, by its general name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.replication_pad import ReplicationPad


class Pad(Translation):
    """Pads by the edge as in `replication_pad.py`; leaves other modes to PyTorch's exporter."""

    targets = ("aten::pad",)

    def decompose(self, x: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
        return ReplicationPad().decompose(x, pad) if mode == "replicate" else NotImplemented

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 5, 4)
        yield Sample((x[0], [-2, 3], "replicate"))
        yield Sample((x, [-1, 2, 1, -5], "replicate"), dynamic={0: {0: "n"}})
        yield Sample((x, [1, 2, 0, 1], "replicate"))
        yield Sample((x, [1, 2, 0, 1], "constant", 0.5))
        yield Sample((x, [1, 2, 0, 1], "reflect"))
