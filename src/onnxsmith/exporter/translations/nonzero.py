"""`nonzero` of a tensor without axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Nonzero(Translation):
    """A number that is not zero is one place with no coordinates, where ONNX's NonZero gives it one."""

    targets = ("aten::nonzero",)

    def decompose(self, x: Any) -> Any:
        return x.reshape(1).nonzero().narrow(1, 0, 0) if x.dim() == 0 else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(1.0),))
        yield Sample((torch.tensor(False),))
        yield Sample((torch.randint(0, 2, (3, 4)),))
