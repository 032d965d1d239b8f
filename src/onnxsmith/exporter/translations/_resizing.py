"""Resizes the last axes of a tensor by one Resize node of ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._constants import constant
from onnxsmith.exporter.translations.base import onnx_op

TAKEN = (torch.float32, torch.float16)
"""Dtypes that ONNX Runtime's Resize computes as PyTorch does; the formulas of PyTorch stand for the others."""


def output_sizes(x: Any, sizes: Sequence[Any] | None, factors: Sequence[float] | None) -> list[Any]:
    """The sizes after a resize to `sizes`, or by `factors`: rounded down, as in PyTorch and in ONNX."""
    if sizes is not None:
        return list(sizes)
    assert factors is not None
    return [math.floor(n * factor) for n, factor in zip(x.shape[-len(factors) :], factors, strict=True)]


def resized(x: Any, sizes: Sequence[Any], factors: Sequence[float] | None, **attributes: Any) -> Any:
    """`x` resized along its last axes. With `factors`, the step in the input is 1 / factor, as PyTorch has it, and not
    the ratio of the sizes."""
    count = len(sizes)
    shape = [*x.shape[: x.dim() - count], *sizes]
    axes = list(range(x.dim() - count, x.dim()))
    if factors is not None:
        scales = constant(list(factors), torch.float32)
        return onnx_op("Resize", x, None, scales, None, shape=shape, version=18, axes=axes, **attributes)
    wanted = torch.stack([torch.full((), size, dtype=torch.int64) for size in sizes])
    return onnx_op("Resize", x, None, None, wanted, shape=shape, version=18, axes=axes, **attributes)
