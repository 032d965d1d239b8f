"""`cosine_similarity` of tensors without axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.base.seams.torch.operators import composite
from onnxsmith.exporter.translations.base import Sample, Translation


class CosineSimilarity(Translation):
    """What PyTorch makes of it; numbers get an axis first, for norms in ONNX need one."""

    targets = ("aten::cosine_similarity",)

    def decompose(self, x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
        operator = torch.ops.aten.cosine_similarity.default
        if x.dim() == y.dim() == 0:
            return composite(operator, x.reshape(1), y.reshape(1), 0, eps)
        return composite(operator, x, y, dim, eps)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(2.0), torch.tensor(-3.0), 0))
        yield Sample((torch.randn(3, 4), torch.randn(3, 4)))
        yield Sample((torch.randn(2, 1, 4), torch.randn(3, 4), -1, 0.5))
        yield Sample((torch.randn(3, 4), torch.randn(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})
