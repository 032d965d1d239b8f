"""Normalisation of batches, by given statistics and by their own, and of groups of channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class BatchNorm(Translation, targets="aten::_native_batch_norm_legit_no_training"):
    """Normalises a batch by given mean and variance: BatchNormalization, or plain arithmetic for float64.

    The other two results, mean and inverse deviation of the batch, are empty, as in PyTorch.
    """

    def decompose(self, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> Any:
        del momentum
        if mean.dtype != x.dtype:
            return NotImplemented
        weight = torch.ones_like(mean) if weight is None else weight
        bias = torch.zeros_like(mean) if bias is None else bias
        if x.dtype == torch.float64:  # `epsilon` is a float32 attribute in ONNX
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
        biased = (torch.randn(2, 3, 5), None, torch.randn(3), *statistics, 0.1, 1e-5)
        yield Sample(biased, dynamic={0: {0: "n", 2: "l"}})


class GroupNorm(Translation, targets="aten::group_norm"):
    """Normalises groups of channels by InstanceNormalization at every opset, as PyTorch decomposes it. From opset 21 on
    torch.onnx writes GroupNormalization, whose definition cancels where the mean is far above the spread: at a mean of
    100 spreads it is off by 2e-2 (`docs/decisions/0010`)."""

    def decompose(self, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
        batch, channels, *inner = x.shape
        return torch.ops.aten.native_group_norm.default(
            x, weight, bias, batch, channels, math.prod(inner), groups, eps
        )[0]

    def samples(self) -> Iterator[Sample]:
        for shape in ((2, 6), (2, 6, 5), (2, 6, 4, 5)):
            yield Sample((torch.randn(shape), 3, torch.randn(6), torch.randn(6), 1e-5))
            yield Sample((torch.randn(shape), 2))
        yield Sample((torch.randn(2, 6, 4, 5), 3, torch.randn(6), None, 1e-3), dynamic={0: {0: "n", 2: "h", 3: "w"}})


class TrainingBatchNorm(Translation):
    """Normalises a batch by its own mean and variance; the running statistics move towards these. Outside training the
    running statistics are used, as in `BatchNorm`.

    Returns the normalised tensor, the mean and 1/√(variance + eps). The functional form also returns the new running
    statistics, whose variance has the divisor n - 1.
    """

    targets = ("aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit.no_stats")

    def decompose(self, x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        running: tuple[Any, ...] = rest[:2] if len(rest) == 5 else ()
        training, momentum, eps = rest[-3:]
        if not training and not running:
            return NotImplemented
        if not training:
            mean, variance = rest[0], rest[1]
            found = BatchNorm().decompose(x, weight, bias, mean, variance, momentum, eps)
            return (*found, mean.clone(), variance.clone())
        axes = [axis for axis in range(x.dim()) if axis != 1]
        mean = x.mean(axes, keepdim=True)
        centred = x - mean
        # A float32 mean of many large numbers errs by more than their spread; the mean of the differences corrects it.
        left = centred.mean(axes, keepdim=True)
        mean, centred = mean + left, centred - left
        variance = (centred * centred).mean(axes, keepdim=True)
        inverse = (variance + eps).rsqrt()
        shape = [-1, *[1] * (x.dim() - 2)]
        found = centred * inverse
        found = found if weight is None else found * weight.reshape(shape)
        found = found if bias is None else found + bias.reshape(shape)
        mean, variance = mean.reshape(-1), variance.reshape(-1)
        results = (found, mean, inverse.reshape(-1))
        if not running:
            return results
        number = torch.full((), math.prod(x.shape[axis] for axis in axes), dtype=x.dtype)
        unbiased = variance * (number / (number - 1))
        moved = ((1 - momentum) * old + momentum * new for old, new in zip(running, (mean, unbiased), strict=True))
        return (*results, *moved)

    def samples(self) -> Iterator[Sample]:
        functional, plain = self.targets
        for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5)):
            parameters = (torch.randn(3), torch.randn(3))
            running = (torch.randn(3), torch.rand(3))
            yield Sample((torch.randn(shape), *parameters, *running, True, 0.3, 1e-3), {}, functional)
            yield Sample((torch.randn(shape), *parameters, True, 0.3, 1e-3), {}, plain)
            yield Sample((torch.randn(shape), None, None, True, 0.3, 1e-3), {}, plain)
            yield Sample((torch.randn(shape), *parameters, *running, False, 0.3, 1e-3), {}, functional)
        wide = (torch.randn(2, 3, 5) * 2 + 100, *parameters, *running, True, 0.1, 1e-5)
        yield Sample(wide, {}, functional, {0: {0: "n", 2: "length"}})
