"""QuantizeLinear and DequantizeLinear in a translation: scales, zero points, ranges, axes and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._tensors import constant
from onnxsmith.exporter.translations.base import Translation, onnx_op

BITS = "onnxsmith.bits"
"""Is a metadata key of a DequantizeLinear node: the width in bits of integers that use only a part of their dtype's
range."""
QUANTIZED = (torch.int8, torch.uint8, torch.int16, torch.uint16)
"""Lists the output dtypes of QuantizeLinear. DequantizeLinear also reads int32."""


class Decomposed(Translation, library="torch.ao.quantization.fx._decomposed"):
    """Translates an operator of `quantized_decomposed`, which this module of torch defines."""


def quantize(x: Any, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype, axis: int = 0) -> Any:
    """Quantises x to integers from `low` to `high` of `dtype`: `clip(round(x / scale) + zero_point)`.

    Scale and zero point are numbers, or tensors with one element or with one for each index of `axis`. A range narrower
    than the dtype's adds a Clip after QuantizeLinear, which saturates at the dtype's limits only.
    """
    scale, offset = _parameters(scale, zero_point, dtype)
    x = x.to(torch.float32)
    if dtype not in QUANTIZED:
        shape = [1] * x.dim()
        if scale.dim():
            shape[axis] = -1
        whole = torch.round(x * (1.0 / scale.reshape(shape))) + offset.reshape(shape)
        return torch.clamp(whole, low, high).to(dtype)
    along = {"axis": axis % x.dim()} if scale.dim() else {}
    made = onnx_op("QuantizeLinear", x, scale, offset, dtype=dtype, **along)
    limits = torch.iinfo(dtype)
    if low <= limits.min and high >= limits.max:
        return made
    return onnx_op("Clip", made, constant(low, dtype), constant(high, dtype))


def dequantize(
    q: Any, scale: Any, zero_point: Any, *, low: int | None = None, high: int | None = None, axis: int = 0,
    block: int = 0, dtype: torch.dtype | None = None,
) -> Any:  # fmt: skip
    """Dequantises q: `(q - zero_point) * scale`.

    Scale and zero point are as for `quantize`. With `block`, they have the rank of q and one element for each block of
    that many indices of `axis`. `low` and `high` are the range of q, which may be narrower than its dtype's. The result
    has the dtype `dtype`; default: float32.
    """
    if isinstance(zero_point, torch.Tensor) and zero_point.dtype.is_floating_point:
        made = dequantize(q, scale, None, low=low, high=high, axis=axis, block=block)
        return (made - _spread(scale * zero_point, q, axis, block)).to(dtype or torch.float32)
    if q.dtype == torch.int32 and isinstance(zero_point, torch.Tensor):
        q = q - _spread(zero_point, q, axis, block).to(torch.int32)  # DequantizeLinear has no zero point for int32
    elif q.dtype == torch.int32 and zero_point:
        q = q - zero_point
    scale, offset = _parameters(scale, zero_point, q.dtype, block)
    along: dict[str, Any] = {"axis": axis % q.dim()} if scale.dim() else {}
    if block:
        along["block_size"] = block
    narrow = bits(low, high)
    made = onnx_op(
        "DequantizeLinear", q, scale, None if q.dtype == torch.int32 else offset, dtype=torch.float32,
        metadata={BITS: str(narrow)} if narrow else None, **along,
    )  # fmt: skip
    return made.to(dtype or torch.float32)


def quantize_rows(x: Any, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype) -> Any:
    """Quantises x with a scale and a zero point that are computed at run time and broadcast to x. Divides the rows by
    their scales first, because runtimes fuse a QuantizeLinear only if it has one scale."""
    whole = x.to(torch.float32) * (1.0 / scale.to(torch.float32))
    if zero_point is not None:
        whole = torch.round(whole) + zero_point.to(torch.float32)
    return quantize(whole, 1.0, 0, low, high, dtype)


def dequantize_rows(q: Any, scale: Any, zero_point: Any, dtype: torch.dtype | None = None) -> Any:
    """Reverses `quantize_rows`."""
    made = dequantize(q, 1.0, 0)
    if zero_point is not None:
        made = made - zero_point.to(torch.float32)
    return (made * scale.to(torch.float32)).to(dtype or torch.float32)


def dtype_of(low: int, high: int) -> torch.dtype | None:
    """Returns the narrowest output dtype of QuantizeLinear that holds the range, or None if none does."""
    for dtype in (torch.uint8, torch.int8, torch.uint16, torch.int16):
        if torch.iinfo(dtype).min <= low and high <= torch.iinfo(dtype).max:
            return dtype
    return None


def blocked_axis(sizes: Sequence[Any], blocks: Sequence[int]) -> tuple[int, int] | None:
    """Returns the axis and the block size of a quantisation in blocks of these sizes, or None if ONNX has no form for
    it. Block size 0 means one scale for each index of the axis, or one scale for all."""
    whole = [axis for axis, (size, block) in enumerate(zip(sizes, blocks, strict=True)) if size != block]
    if not whole:
        return 0, 0
    if len(whole) == 1 and blocks[whole[0]] == 1:
        return whole[0], 0
    split = [axis for axis in whole if blocks[axis] != 1]
    singles = [axis for axis, block in enumerate(blocks) if block == 1]
    if len(split) == 1 and len(singles) == len(blocks) - 1:
        return split[0], blocks[split[0]]
    return None


def as_blocks(sizes: Sequence[Any], blocks: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Returns two shapes: of the tensor with each divided axis split into (blocks, block), and of one value for each
    block."""
    grouped: list[Any] = []
    one: list[Any] = []
    for size, block in zip(sizes, blocks, strict=True):
        if block in (1, size):
            grouped.append(size)
            one.append(size if block == 1 else 1)
        else:
            grouped += [size // block, block]
            one += [size // block, 1]
    return grouped, one


def _spread(values: Any, q: Any, axis: int, block: int) -> Any:
    """Expands `values` to one for each element of q. There is one value in all, one for each index of the axis, or one
    for each block."""
    if block:
        return values.repeat_interleave(block, axis)
    if values.numel() == 1:
        return values.reshape(())
    shape = [1] * q.dim()
    shape[axis] = -1
    return values.reshape(shape)


def _parameters(scale: Any, zero_point: Any, dtype: torch.dtype, block: int = 0) -> tuple[Any, Any]:
    """Returns scale and zero point as tensors; 0-d if they have one element."""
    scale = scale.to(torch.float32) if isinstance(scale, torch.Tensor) else constant(scale, torch.float32)
    offset = zero_point
    if zero_point is None:
        offset = torch.zeros_like(scale, dtype=dtype)
    elif not isinstance(zero_point, torch.Tensor):
        offset = constant(int(zero_point), dtype)
    offset = offset.to(dtype)
    if scale.numel() == 1 and not block:
        return scale.reshape(()), offset.reshape(())
    return scale, offset.expand(scale.shape) if offset.dim() == 0 else offset


def bits(low: int | None, high: int | None) -> int:
    """Returns 4 if the range fits a 4-bit integer, else 0. An unknown range gives 0."""
    if low is None or high is None:
        return 0
    return 4 if (low >= -8 and high <= 7) or (low >= 0 and high <= 15) else 0
