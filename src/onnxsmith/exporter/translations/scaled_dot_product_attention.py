"""Attention with a mask, or over tensors with other than four axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


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
