"""Activations: softmax, ReLU with random slopes, log-sigmoid; attention with a mask, or over other than four axes."""

from __future__ import annotations

import math
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


class ScaledDotProductAttention(Translation, targets="aten::scaled_dot_product_attention"):
    """Computes attention, softmax(scale · QKᵀ + mask) V, with Q and K each scaled by √scale before their product.

    A query whose keys are all masked gives 0, as in PyTorch; a softmax of minus infinities alone would be NaN. Four
    axes without a mask are left to PyTorch's exporter.
    """

    def decompose(
        self, query: Any, key: Any, value: Any, mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
        scale: float | None = None, enable_gqa: bool = False, attn_mask: Any = None,
    ) -> Any:  # fmt: skip
        mask = attn_mask if mask is None else mask
        if query.dim() == key.dim() == value.dim() == 4 and mask is None:
            return NotImplemented
        if enable_gqa and query.dim() > 2:
            key, value = (self._shared(one, query) for one in (key, value))
        if is_causal:
            mask = torch.ones((query.shape[-2], key.shape[-2]), dtype=torch.bool).tril()
        factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        scores = (query * factor) @ (key.transpose(-2, -1) * factor)
        if mask is not None and mask.dtype == torch.bool:
            scores = torch.where(mask, scores, torch.full((), -float("inf"), dtype=scores.dtype))
        elif mask is not None:
            scores = scores + mask
        weights = scores.softmax(-1)
        if mask is not None and not is_causal:
            nothing = scores.amax(-1, keepdim=True) == -float("inf")
            weights = torch.where(nothing, torch.zeros((), dtype=weights.dtype), weights)
        if dropout_p:
            weights = torch.dropout(weights, dropout_p, True)
        return weights @ value

    def _shared(self, one: Any, query: Any) -> Any:
        """Repeats each head for all queries that share it."""
        times = query.shape[-3] // one.shape[-3]
        return one if times == 1 else one.repeat_interleave(times, -3)

    def samples(self) -> Iterator[Sample]:
        for lead in ((), (3,), (2, 3), (2, 1, 3)):
            q, k, v = torch.randn(*lead, 4, 8), torch.randn(*lead, 5, 8), torch.randn(*lead, 5, 6)
            yield Sample((q, k, v))
            yield Sample((q, k, v, None, 0.0, True), {"scale": 0.7})
            yield Sample((q, k, v), {"attn_mask": torch.randn(4, 5)})
            nothing = torch.rand(4, 5) > 0.5
            nothing[1] = False
            yield Sample((q, k, v, nothing))
            unseen = torch.randn(4, 5)
            unseen[1] = -float("inf")
            yield Sample((q, k, v, unseen))
        grouped = (torch.randn(2, 6, 4, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8))
        yield Sample((*grouped, torch.rand(2, 1, 4, 5) > 0.5), {"enable_gqa": True})
        q, k, v = torch.randn(3, 4, 8), torch.randn(3, 5, 8), torch.randn(3, 5, 8)
        axes = {0: {0: "n", 1: "l"}, 1: {0: "n", 1: "s"}, 2: {0: "n", 1: "s"}}
        yield Sample((q, k, v), {}, "", axes)
        yield Sample((q, k, v, torch.rand(3, 4, 5) > 0.5), {}, "", {**axes, 3: {0: "n", 1: "l", 2: "s"}})
