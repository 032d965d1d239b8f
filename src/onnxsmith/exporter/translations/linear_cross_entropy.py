"""The cross entropy of a linear layer in chunks of the batch, which save memory in training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch.nn import functional

from onnxsmith.base.library_versions import Lifetime
from onnxsmith.exporter.translations._torch_versions import existing
from onnxsmith.exporter.translations.base import Sample, Translation


class LinearCrossEntropy(Translation):
    """Computes all chunks at once: a graph computes no gradients. Leaves calls without chunks to PyTorch's exporter."""

    targets = ()
    functions = existing(functional, "linear_cross_entropy")
    lifetimes: ClassVar = {"torch.nn.functional:linear_cross_entropy": Lifetime(added="2.13")}

    def decompose(self, *args: Any, options: Any = None, **kwargs: Any) -> Any:
        if options is None:
            return NotImplemented
        return functional.linear_cross_entropy(*args, **kwargs)

    def samples(self) -> Iterator[Sample]:
        x, weight, target = torch.randn(5, 3), torch.randn(4, 3), torch.tensor([0, 3, 1, 2, 2])
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        for reduction in ("mean", "sum", "none"):
            yield Sample((x, weight, target), {"reduction": reduction, "options": options})
        yield Sample((x, weight, target), {"options": options, "ignore_index": 2, "linear_bias": torch.randn(4)})
        yield Sample((x, weight, target), {"options": options}, dynamic={0: {0: "n"}, 2: {0: "n"}})
