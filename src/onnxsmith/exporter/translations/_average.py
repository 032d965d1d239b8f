"""Averages over sliding windows, for any number of axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch.nn import functional

from onnxsmith.exporter.translations._windows import windows
from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class AveragePool(Translation):
    """The sum over each window, divided by the number of positions that count.

    With `ceil_mode` the last window may end after the padding, but must start before its end. Positions after the
    padding never count; positions in the padding count with `count_include_pad`; `divisor_override` replaces the count.
    ONNX's AveragePool gets a tensor that is padded so that every window is full, and its divisor is corrected. ONNX
    Runtime supports AveragePool for float32 and float16; other dtypes are summed axis by axis.
    """

    axes: ClassVar[int]

    def decompose(
        self, x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel = self._each(kernel_size)
        stride = self._each(stride) if stride else kernel
        pads = self._each(padding)
        batched = x if x.dim() > self.axes + 1 else x.unsqueeze(0)
        found = self._pooled(batched, kernel, stride, pads, ceil_mode, count_include_pad, divisor_override)
        return found if x.dim() > self.axes + 1 else found.squeeze(0)

    def _each(self, value: Any) -> list[int]:
        values = [value] if isinstance(value, int) else list(value)
        return values * self.axes if len(values) == 1 else values

    def _pooled(
        self, x: Any, kernel: list[int], stride: list[int], pads: list[int], ceil_mode: bool, include: bool,
        divisor: int | None,
    ) -> Any:  # fmt: skip
        in_onnx = x.dtype in (torch.float32, torch.float16)
        if in_onnx and not ceil_mode and divisor is None:
            sizes = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(x.shape[2:], kernel, stride, pads, strict=True)]
            return onnx_op(
                "AveragePool", x, shape=[*x.shape[:2], *sizes], kernel_shape=kernel, strides=stride,
                pads=[*pads, *pads], count_include_pad=int(include),
            )  # fmt: skip
        beyond = [min(s - 1, k - 1 - p) if ceil_mode else 0 for k, s, p in zip(kernel, stride, pads, strict=True)]
        around = [amount for p, more in zip(reversed(pads), reversed(beyond), strict=True) for amount in (p, p + more)]
        padded = functional.pad(x, around) if any(around) else x
        counts, lengths = [], []
        for n, k, s, p, more in zip(x.shape[2:], kernel, stride, pads, beyond, strict=True):
            length = (n + 2 * p + more - k) // s + 1
            lengths.append(length)
            begin = torch.arange(length) * s - p
            end = (begin + k).clamp(max=n + p)
            counts.append(end - begin if include else end.clamp(max=n) - begin.clamp(min=0))
        if in_onnx:
            shape = [*x.shape[:2], *lengths]
            mean = onnx_op("AveragePool", padded, shape=shape, kernel_shape=kernel, strides=stride)
            total = mean * float(math.prod(kernel))
        else:
            total = _sums(padded, kernel, stride, lengths)
        if divisor is not None:
            return _divided(total, torch.full((), divisor, dtype=x.dtype))
        for axis, count in enumerate(counts):
            counts[axis] = count.reshape([-1 if axis == other else 1 for other in range(self.axes)])
        return _divided(total, _product(counts).to(x.dtype))

    def samples(self) -> Iterator[Sample]:
        sizes = (7, 6, 5)[: self.axes]
        open_axes = {0: {0: "n", 2: "length"}}
        for ceil_mode in (False, True):
            for include in (False, True):
                for kernel, stride, pad in ((3, 2, 1), (2, 3, 1), (3, 4, 0)):
                    call = ([kernel], [stride], [pad], ceil_mode, include)
                    yield Sample((torch.randn(2, 3, *sizes), *call))
                    yield Sample((torch.randn(2, *sizes, dtype=torch.float64), *call))
                    yield Sample((torch.randn(2, 3, *sizes), *call), dynamic=open_axes)
        yield Sample((torch.randn(2, 3, *sizes), [2]))
        if self.axes > 1:
            yield Sample((torch.randn(2, 3, *sizes), [2], [], [0], True, True, 3))
            yield Sample((torch.randint(-9, 9, (2, 3, *sizes)), [3], [2], [1], True, False))
            uneven = ([3, 2, 1], [2, 1, 3], [1, 1, 0])
            yield Sample((torch.randn(2, *sizes), *(values[: self.axes] for values in uneven)))


def _sums(x: Any, kernel: list[int], stride: list[int], lengths: Sequence[Any]) -> Any:
    for axis, (k, s, length) in enumerate(zip(kernel, stride, lengths, strict=True), 2):
        x = windows(x, axis, torch.arange(length).unsqueeze(1) * s + torch.arange(k)).sum(axis + 1, dtype=x.dtype)
    return x


def _divided(total: Any, count: Any) -> Any:
    return total / count if total.dtype.is_floating_point else torch.div(total, count, rounding_mode="trunc")


def _product(factors: Sequence[Any]) -> Any:
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return found
