"""Scatters elements along an axis and reduces them with the elements of the target."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations.base import onnx_op

_ONNX = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scattered(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, how: str, include_self: bool = True
) -> torch.Tensor:
    """`x` with each element of `source` reduced into the place that `index` names along `dim`.

    `how` is sum, prod, mean, amax or amin. Without `include_self` a place that is reduced into begins anew. `source`
    may be longer than `index`. A tensor without axes counts as one with one element.
    """
    if x.dim() == 0:
        return scattered(x.reshape(1), 0, index.reshape(1), source.reshape(1), how, include_self).reshape(())
    index, source = (t.reshape(1) if t.dim() == 0 else t for t in (index, source))
    if source.shape != index.shape:
        for axis, size in enumerate(index.shape):
            source = source.narrow(axis, 0, size)
    if x.dtype == torch.bool:
        return scattered(x.int(), dim, index, source.int(), how, include_self).bool()
    if how == "mean":
        return _mean(x, dim, index, source, include_self)
    start = x if include_self else x.scatter(dim, index, _identity(how, x.dtype))
    found = _reduced(start, dim, index, source, _ONNX[how])
    if how in ("sum", "prod") or not x.dtype.is_floating_point:
        return found
    nan = _reduced(start.isnan().int(), dim, index, source.isnan().int(), "max").bool()  # ONNX's max may lose it
    return torch.where(nan, torch.full((), float("nan"), dtype=x.dtype), found)


def _mean(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, include_self: bool) -> torch.Tensor:
    total = scattered(x, dim, index, source, "sum", include_self)
    counted = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = _reduced(counted, dim, index, torch.ones_like(source), "add")
    count = count if include_self else count.clamp(min=1)
    return total / count if x.dtype.is_floating_point else torch.div(total, count, rounding_mode="floor")


def _reduced(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduction: str) -> torch.Tensor:
    return onnx_op("ScatterElements", x, index.long(), source, axis=dim % x.dim(), reduction=reduction)


def _identity(how: str, dtype: torch.dtype) -> float:
    """The neutral element of the reduction."""
    if how in ("sum", "prod"):
        return 0 if how == "sum" else 1
    sign = -1 if how == "amax" else 1
    if dtype.is_floating_point:
        return sign * float("inf")
    info = torch.iinfo(dtype)
    return info.min if sign < 0 else info.max
