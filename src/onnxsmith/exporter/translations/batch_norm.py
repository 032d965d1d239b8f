"""Batch normalisation by statistics that are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class BatchNorm(Translation):
    """ONNX's BatchNormalization, written out for float64. The statistics of the batch, which are not worked out, are
    empty, as in PyTorch."""

    targets = ("aten::_native_batch_norm_legit_no_training",)

    def decompose(self, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> Any:
        del momentum
        if mean.dtype != x.dtype:
            return NotImplemented
        weight = torch.ones_like(mean) if weight is None else weight
        bias = torch.zeros_like(mean) if bias is None else bias
        if x.dtype == torch.float64:  # an attribute in ONNX is a float32
            shape = [-1, *[1] * (x.dim() - 2)]
            scale = weight / (variance + eps).sqrt()
            found = (x - mean.reshape(shape)) * scale.reshape(shape) + bias.reshape(shape)
        else:
            found = onnx_op("BatchNormalization", x, weight, bias, mean, variance, epsilon=float(eps))
        none = torch.zeros((0,), dtype=x.dtype)
        return found, none, none.clone()

    def samples(self) -> Iterator[Sample]:
        statistics = (torch.randn(3), torch.rand(3) + 0.1)
        for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5)):
            yield Sample((torch.randn(shape), torch.randn(3), torch.randn(3), *statistics, 0.1, 1e-5))
            yield Sample((torch.randn(shape), None, None, *statistics, 0.1, 1e-3))
        doubles = tuple(one.double() for one in (torch.randn(2, 3), torch.randn(3), torch.randn(3), *statistics))
        yield Sample((*doubles, 0.1, 1e-5))
        yield Sample(
            (torch.randn(2, 3, 5), None, torch.randn(3), *statistics, 0.1, 1e-5), dynamic={0: {0: "n", 2: "l"}}
        )
