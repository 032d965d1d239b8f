"""Quantises: chooses scales and zero points, rounds to integers, and computes fake quantisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import (
    QUANTIZED,
    Decomposed,
    as_blocks,
    dequantize,
    dtype_of,
    quantize,
    quantize_rows,
)
from onnxsmith.exporter.translations.base import Sample, Translation


class ChooseQparams(Decomposed, targets="quantized_decomposed::choose_qparams.tensor"):
    """Chooses a scale and a zero point from the smallest and the largest element, with 0 in the range.

    The formula is that of torch.ao.quantization.utils.determine_qparams.
    """

    def decompose(self, x: Any, low: int, high: int, eps: float, dtype: torch.dtype) -> Any:
        least, most = x.to(torch.float32).amin().clamp(max=0.0), x.to(torch.float32).amax().clamp(min=0.0)
        scale = ((most - least) / float(high - low)).clamp(min=eps)
        zero = (low - torch.round(least / scale)).clamp(low, high)
        return scale.reshape(1).to(torch.float64), zero.reshape(1).to(torch.int64)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        for one in (x, x.abs(), -x.abs(), x * 0):
            yield Sample((one, -128, 127, 1e-5, torch.int8))
        yield Sample((x, 0, 255, 1e-5, torch.uint8), dynamic={0: {0: "n"}})


class ChooseQparamsSymmetric(Decomposed, targets="quantized_decomposed::choose_qparams_symmetric.tensor"):
    """Chooses the scale from the largest magnitude. The zero point is 0, or 128 for uint8.

    The formula is that of torch.ao.quantization.utils.determine_qparams.
    """

    def decompose(self, x: Any, low: int, high: int, eps: float, dtype: torch.dtype) -> Any:
        most = x.to(torch.float32).abs().amax()
        scale = (most / (float(high - low) / 2)).clamp(min=eps).reshape(1).to(torch.float64)
        return scale, torch.full((1,), 128 if dtype == torch.uint8 else 0, dtype=torch.int64)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        yield Sample((x, -128, 127, 1e-5, torch.int8))
        yield Sample((x * 0, -127, 127, 1e-5, torch.int8))
        yield Sample((x, 0, 255, 1e-5, torch.uint8), dynamic={0: {0: "n"}})


class ChooseQparamsPerToken(Decomposed, targets="quantized_decomposed::choose_qparams_per_token"):
    """Chooses the scale of each row so that its largest magnitude, at least 1e-5, becomes 127. The zero points are
    0."""

    def decompose(self, x: Any, dtype: torch.dtype) -> Any:
        scales = x.abs().amax(dim=-1, keepdim=True).to(torch.float32).clamp(min=1e-5) / 127
        return scales, torch.zeros_like(scales)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        yield Sample((x, torch.int8), dynamic={0: {0: "n"}})
        yield Sample((x * 0, torch.int8))


class QuantizePerTensor(Decomposed, targets="quantized_decomposed::quantize_per_tensor"):
    """Quantises with one scale and one zero point by QuantizeLinear. A range narrower than the dtype's adds a Clip."""

    def decompose(self, x: Any, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype) -> Any:
        return quantize(x, scale, zero_point, low, high, dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        yield Sample((x, 1.0, 0, -128, 127, torch.int8), dynamic={0: {0: "n"}})
        yield Sample((x, 0.5, 3, 0, 127, torch.uint8))
        yield Sample((x, 0.25, -2, -7, 7, torch.int8))
        yield Sample((x, 0.25, 0, -(2**31), 2**31 - 1, torch.int32))
        one, zero = torch.tensor([0.5], dtype=torch.float64), torch.tensor([4])
        yield Sample((x, one, zero, 0, 255, torch.uint8), target=self.targets[0] + ".tensor")
        yield Sample((torch.tensor(3.3), 0.1, 0, -128, 127, torch.int8))
        yield Sample((torch.zeros(0, 2), 0.1, 0, -128, 127, torch.int8))


class QuantizePerChannel(Decomposed, targets="quantized_decomposed::quantize_per_channel"):
    """Quantises with a scale for each channel by QuantizeLinear with an axis. A range narrower than the dtype's adds a
    Clip."""

    def decompose(
        self, x: Any, scales: Any, zero_points: Any, axis: int, low: int, high: int, dtype: torch.dtype
    ) -> Any:
        return quantize(x, scales, zero_points, low, high, dtype, axis)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        two, three = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        yield Sample((x, two, torch.tensor([0, 0]), 0, -128, 127, torch.int8))
        yield Sample((x, three, torch.tensor([0, 2, 4]), 1, 0, 127, torch.uint8))
        yield Sample((x, two, torch.tensor([0, 0]), 0, -(2**31), 2**31 - 1, torch.int32))
        yield Sample((x[:1], two[:1], torch.tensor([1]), 0, -127, 127, torch.int8))


class QuantizePerChannelGroup(Decomposed, targets="quantized_decomposed::quantize_per_channel_group"):
    """Quantises a matrix with a scale for each group of a row: divides the groups by their scales, then quantises with
    scale 1."""

    def decompose(
        self, x: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype, group_size: int = 128
    ) -> Any:
        size = min(group_size, x.shape[-1])
        groups = x.reshape(-1, size)
        whole = groups * (1.0 / scales).to(x.dtype).reshape(-1, 1) + zero_points.to(x.dtype).reshape(-1, 1)
        return quantize(whole, 1.0, 0, low, high, dtype).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5, 7.0], [1.5, 2.5, 400.0, -9.0]])
        scales, zeros = torch.tensor([[0.5, 1.0], [2.0, 0.25]]), torch.tensor([[0, 1], [-2, 0]], dtype=torch.int32)
        yield Sample((x, scales, zeros, -8, 7, torch.int8, 2))
        yield Sample((x, scales[:, :1], zeros[:, :1], -128, 127, torch.int8, 32))


class QuantizePerToken(Decomposed, targets="quantized_decomposed::quantize_per_token"):
    """Quantises with a scale for each row, computed at run time: divides the rows by their scales, then quantises with
    scale 1."""

    def decompose(self, x: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype) -> Any:
        whole = x * (1.0 / scales).to(x.dtype) + zero_points.to(x.dtype)
        return quantize(whole, 1.0, 0, low, high, dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        scales, zeros = torch.tensor([[0.5], [2.0]], dtype=torch.float64), torch.tensor([[0], [3]])
        rows = {0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}}
        yield Sample((x, scales, zeros, -128, 127, torch.int8), dynamic=rows)
        yield Sample((x, scales, zeros, -7, 7, torch.int8))


class QuantizeAffine(Translation, targets="torchao::quantize_affine", library="torchao.quantization"):
    """Quantises with a scale for each block of the given sizes (torchao): divides by the scales, then quantises with
    scale 1.

    `_quantizing.quantize_rows` says why.
    """

    def decompose(
        self, x: Any, block_size: Any, scale: Any, zero_point: Any, output_dtype: torch.dtype, quant_min: Any = None,
        quant_max: Any = None,
    ) -> Any:  # fmt: skip
        if output_dtype not in QUANTIZED:
            return NotImplemented
        limits = torch.iinfo(output_dtype)
        low = limits.min if quant_min is None else int(quant_min)
        high = limits.max if quant_max is None else int(quant_max)
        given = zero_point is not None and zero_point.numel()
        grouped, one = as_blocks(x.shape, block_size)
        zeros = zero_point.reshape(one) if given else None
        return quantize_rows(x.reshape(grouped), scale.reshape(one), zeros, low, high, output_dtype).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5, 7.0], [1.5, 2.5, 400.0, -9.0]])
        rows, groups = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.5, 1.0], [2.0, 0.25]])
        yield Sample((x, [1, 4], rows, torch.tensor([[0], [3]], dtype=torch.int8), torch.int8))
        yield Sample((x, [1, 2], groups, torch.tensor([[0, 1], [3, 2]], dtype=torch.int8), torch.int8, -8, 7))
        yield Sample((x, [2, 4], torch.tensor(0.5), torch.tensor(3), torch.uint8, 0, 255))


def faked(x: Any, scale: Any, zero_point: Any, low: int, high: int, axis: int = 0) -> Any:
    """Quantises x and dequantises it, or returns `NotImplemented` if no dtype of QuantizeLinear holds the range."""
    dtype = dtype_of(low, high)
    if dtype is None:
        return NotImplemented
    q = quantize(x, scale, zero_point, low, high, dtype, axis)
    return dequantize(q, scale, zero_point, low=low, high=high, axis=axis, dtype=x.dtype)


class FakeQuantizePerTensor(Translation):
    """Computes fake quantisation with one scale by QuantizeLinear, a Clip for a narrow range, and DequantizeLinear."""

    targets = ("aten::fake_quantize_per_tensor_affine",)
    functions = (torch.fake_quantize_per_tensor_affine,)

    def decompose(self, x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
        return faked(x, scale, zero_point, low, high)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        yield Sample((x, 1.0, 0, -128, 127), dynamic={0: {0: "n"}}, around=_by_function)
        yield Sample((x, 0.5, 4, 0, 127))
        yield Sample((x, 0.25, 0, -8, 7))
        scale, zero = torch.tensor([0.5]), torch.tensor([4], dtype=torch.int32)
        yield Sample((x, scale, zero, 0, 255), target=self.targets[0] + ".tensor_qparams")


def _by_function(_: Any, *args: Any) -> Any:
    """Calls the function of torch, as its modules do. For the operator with a symbolic size, torch computes no
    shapes."""
    return torch.fake_quantize_per_tensor_affine(*args)


class FakeQuantizePerChannel(Translation):
    """Computes fake quantisation with a scale for each channel by QuantizeLinear and DequantizeLinear with an axis.

    A narrow range adds a Clip between them.
    """

    targets = ("aten::fake_quantize_per_channel_affine",)
    functions = (torch.fake_quantize_per_channel_affine,)

    def decompose(self, x: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
        is_exact = not zero_point.dtype.is_floating_point
        return faked(x, scale, zero_point, low, high, axis) if is_exact else NotImplemented

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        two, three = torch.tensor([0.5, 2.0]), torch.tensor([0.5, 1.0, 2.0])
        yield Sample((x, two, torch.tensor([0, 2], dtype=torch.int32), 0, -127, 127))
        yield Sample((x, three, torch.tensor([0, 2, 4], dtype=torch.int32), 1, 0, 255))
        yield Sample((x, two, torch.tensor([0, 0], dtype=torch.int32), 0, -8, 7))
