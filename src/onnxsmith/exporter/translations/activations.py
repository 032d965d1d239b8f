"""Activations: softmax, ReLU with random slopes, log-sigmoid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, member


class _Casting(Translation):
    """Computes `softmax` or `log_softmax` into another dtype: casts the tensor first, as PyTorch does, not the
    result."""

    function: ClassVar[Callable[..., torch.Tensor]]

    def decompose(self, x: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
        return NotImplemented if dtype in (None, x.dtype) else type(self).function(x.to(dtype), dim)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), 1, torch.float64))
        yield Sample((torch.randint(0, 5, (3, 4)), 0, torch.float32))
        yield Sample((torch.tensor(2.0), 0, torch.float64))
        yield Sample((torch.randn(3, 4), -1), dynamic={0: {0: "n"}})


Softmax = member(_Casting, "Softmax", __name__, "aten::softmax.int", function=torch.softmax)
LogSoftmax = member(_Casting, "LogSoftmax", __name__, "aten::log_softmax.int", function=torch.log_softmax)


class LogSigmoid(Translation, targets="aten::log_sigmoid"):
    """Computes `log_sigmoid` as min(x, 0) - log(1 + exp(-|x|)).

    The logarithm of a float32 sigmoid is inexact where the sigmoid is near 0: at -10 it was off by one part in ten
    thousand.
    """

    def decompose(self, x: Any) -> Any:
        return x.clamp(max=0) - (-x.abs()).exp().log1p()

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor([-100.0, -20.0, -10.5, -1.0, 0.0, 1.0, 10.0, 100.0]),))
        yield Sample((torch.randn(3, 4, dtype=torch.float64) * 5,), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(()),))


class Rrelu(Translation, targets="aten::rrelu_with_noise_functional"):
    """Computes `rrelu`, a ReLU with random slopes for negative elements.

    In training each of these elements gets its own slope, drawn uniformly between the bounds, and the slopes are the
    second result, with 1 for positive elements. Otherwise every slope is the mean of the bounds, and the second result
    is a copy of `noise`.
    """

    def decompose(
        self, x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, _: Any = None
    ) -> Any:
        if not training:
            return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise.clone()
        slope = torch.where(x > 0, torch.ones((), dtype=x.dtype), torch.rand_like(x) * (upper - lower) + lower)
        return x * slope, slope

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4), 0.1, 0.3, False))
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4), 0.2, 0.2, True))
        yield Sample((torch.randn(3, 4), torch.zeros(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})
