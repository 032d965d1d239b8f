"""The order of the elements along an axis, as PyTorch sorts: stable, NaN greater than everything."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations.base import onnx_ops

_SORTED_BY_TOPK = (torch.float16, torch.float32, torch.float64, torch.int32, torch.int64)


def order(x: torch.Tensor, dim: int, descending: bool = False) -> torch.Tensor:
    """The indices that sort `x` along `dim`, int64. `x` has at least one axis.

    ONNX's TopK puts the lower index first among equal elements, so it is a stable sort; it does not define NaN. Here
    NaN counts as infinity in a first sort, and a second sort, by "is NaN", separates NaN from infinities.
    """
    if not x.dtype.is_floating_point:
        return _topk(x, dim, descending)
    nan = x.isnan()
    first = _topk(torch.where(nan, torch.full((), float("inf"), dtype=x.dtype), x), dim, descending)
    second = _topk(nan.to(torch.int32).gather(dim, first), dim, descending)
    return first.gather(dim, second)


def _topk(keys: torch.Tensor, dim: int, descending: bool) -> torch.Tensor:
    if keys.dtype not in _SORTED_BY_TOPK:
        keys = keys.to(torch.float32 if keys.dtype.is_floating_point else torch.int32)
    every = torch.full((1,), keys.shape[dim], dtype=torch.int64)
    _, indices = onnx_ops(
        "TopK",
        keys,
        every,
        outputs=[(keys.dtype, keys.shape), (torch.int64, keys.shape)],
        axis=dim % keys.dim(),
        largest=int(descending),
        sorted=1,
    )
    return indices
