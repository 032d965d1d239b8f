"""Pooling over windows, and a transposed convolution.

Windows along an axis of a tensor are gathered into a new axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch.nn import functional

from onnxsmith.exporter.translations.base import Sample, Translation, member, onnx_op


class Convolution(Translation, targets="aten::convolution"):
    """Computes a transposed convolution whose output padding reaches its stride, which ONNX Runtime refuses.

    The result is computed without any padding, then cut, or extended with the bias. Other convolutions are left to
    PyTorch's exporter.
    """

    def decompose(
        self, x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
        transposed: bool, output_padding: Sequence[int], groups: int,
    ) -> Any:  # fmt: skip
        axes = weight.dim() - 2
        stride, padding, dilation, output_padding = (
            list(v) * axes if len(v) == 1 else list(v) for v in (stride, padding, dilation, output_padding)
        )
        if not transposed or all(more < step for more, step in zip(output_padding, stride, strict=True)):
            return NotImplemented
        none = [0] * axes
        whole = torch.ops.aten.convolution(x, weight, None, stride, none, dilation, True, none, groups)
        around = [
            n for p, more in zip(reversed(padding), reversed(output_padding), strict=True) for n in (-p, more - p)
        ]
        found = torch.ops.aten.constant_pad_nd(whole, around)
        return found if bias is None else found + bias.reshape([-1, *[1] * axes])

    def samples(self) -> Iterator[Sample]:
        def call(axes: int, padding: int, more: int, dilation: int, batch: tuple[int, ...] = (2,)) -> tuple[Any, ...]:
            x, weight = torch.randn(*batch, 4, *(4, 5, 6)[:axes]), torch.randn(4, 3, *(3, 4, 2)[:axes])
            sizes = ([2] * axes, [padding] * axes, [dilation] * axes, True, [more] * axes, 2)
            return (x, weight, torch.randn(6), *sizes)

        for axes in (1, 2, 3):
            for padding, more, dilation in ((1, 2, 4), (3, 2, 3), (1, 1, 1)):
                yield Sample(call(axes, padding, more, dilation))
        yield Sample(call(2, 1, 3, 4), dynamic={0: {0: "n", 2: "height"}})


def windows(x: torch.Tensor, axis: int, places: torch.Tensor) -> torch.Tensor:
    """Returns `x` with `axis` replaced by two axes, [windows, length]: the elements at `places` along it."""
    axis %= x.dim()
    found = x.index_select(axis, places.reshape(-1))
    return found.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def adaptive(length: Any, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the first position and the position after the last, int64, of each of `count` windows of PyTorch's
    adaptive pools over `length` positions: from ⌊i·length/count⌋ to ⌈(i+1)·length/count⌉."""
    number = torch.arange(count)
    begins = torch.div(number * length, count, rounding_mode="floor")
    ends = torch.div((number + 1) * length + count - 1, count, rounding_mode="floor")
    return begins, ends


def longest(length: Any, count: int) -> Any:
    """Returns the length of the longest of these windows. For a symbolic length it may be 1 too large."""
    if isinstance(length, int):
        return max(-(-(i + 1) * length // count) - i * length // count for i in range(count)) if count else 0
    return (length + count - 1) // count + 1


class _AveragePool(Translation):
    """Averages over sliding windows: the sum over a window divided by the number of positions that count.

    With `ceil_mode` the last window may end after the padding, but must start before its end. Positions after the
    padding never count. Positions in the padding count with `count_include_pad`. `divisor_override` replaces the count.

    ONNX's AveragePool gets a tensor padded so that every window is full, and its divisor is corrected. ONNX Runtime
    supports AveragePool for float32 and float16; other dtypes are summed axis by axis.
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
            total = _window_sums(padded, kernel, stride, lengths)
        if divisor is not None:
            return _divided(total, torch.full((), divisor, dtype=x.dtype))
        for axis, count in enumerate(counts):
            counts[axis] = count.reshape([-1 if axis == other else 1 for other in range(self.axes)])
        return _divided(total, math.prod(counts[1:], start=counts[0]).to(x.dtype))

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


def _window_sums(x: Any, kernel: list[int], stride: list[int], lengths: Sequence[Any]) -> Any:
    for axis, (k, s, length) in enumerate(zip(kernel, stride, lengths, strict=True), 2):
        x = windows(x, axis, torch.arange(length).unsqueeze(1) * s + torch.arange(k)).sum(axis + 1, dtype=x.dtype)
    return x


def _divided(total: Any, count: Any) -> Any:
    return total / count if total.dtype.is_floating_point else torch.div(total, count, rounding_mode="trunc")


AvgPool1d = member(_AveragePool, "AvgPool1d", __name__, "aten::avg_pool1d", axes=1)
AvgPool2d = member(_AveragePool, "AvgPool2d", __name__, "aten::avg_pool2d", axes=2)
AvgPool3d = member(_AveragePool, "AvgPool3d", __name__, "aten::avg_pool3d", axes=3)


class AdaptiveAvgPool(Translation):
    """Computes `adaptive_avg_pool1d`, `adaptive_avg_pool2d` and `adaptive_avg_pool3d`: averages over a given number of
    windows.

    If the size is a multiple of this number, an ordinary pool computes them; for one window, a mean. Otherwise window
    lengths differ: every window is gathered with the length of the longest, and positions after its end count as 0.
    """

    targets = (
        "aten::adaptive_avg_pool1d",
        "aten::adaptive_avg_pool2d",
        "aten::_adaptive_avg_pool2d",
        "aten::adaptive_avg_pool3d",
        "aten::_adaptive_avg_pool3d",
    )

    def decompose(self, x: Any, output_size: Any) -> Any:
        counts = list(output_size)
        axes = len(counts)
        lengths = x.shape[-axes:]
        if all(isinstance(count, int) and count == 1 for count in counts):
            return x.mean(list(range(-axes, 0)), keepdim=True)
        if all(
            isinstance(n, int) and isinstance(c, int) and c and n % c == 0 for n, c in zip(lengths, counts, strict=True)
        ):
            pool = (torch.ops.aten.avg_pool1d, torch.ops.aten.avg_pool2d, torch.ops.aten.avg_pool3d)[axes - 1]
            return pool(x, [n // c for n, c in zip(lengths, counts, strict=True)])
        for axis, (n, count) in enumerate(zip(lengths, counts, strict=True), x.dim() - axes):
            if isinstance(n, int) and n == count:
                continue
            begins, ends = adaptive(n, count)
            places = begins.unsqueeze(1) + torch.arange(longest(n, count))
            beyond = [1] * (x.dim() - axis - 1)
            inside = (places < ends.unsqueeze(1)).reshape([*places.shape, *beyond])
            read = windows(x, axis, places.clamp(max=n - 1))
            total = torch.where(inside, read, torch.zeros((), dtype=x.dtype)).sum(axis + 1)
            x = total / (ends - begins).reshape([count, *beyond]).to(x.dtype)
        return x

    def samples(self) -> Iterator[Sample]:
        for axes in (1, 2, 3):
            yield from adaptive_samples(
                f"aten::adaptive_avg_pool{axes}d", axes, lambda sizes: torch.randn(2, *sizes, dtype=torch.float64)
            )


def adaptive_samples(target: str, axes: int, unbatched: Callable[[Sequence[int]], torch.Tensor]) -> Iterator[Sample]:
    """Yields the samples of an adaptive pool over `axes` axes. `unbatched` makes a tensor with two channels."""
    sizes = (8, 7, 6)[:axes]
    for count in ([3, 5, 4], [1, 1, 1], [8, 7, 1], [4, 7, 3], [10, 9, 2]):
        yield Sample((torch.randn(2, 3, *sizes), count[:axes]), {}, target)
        yield Sample((unbatched(sizes), count[:axes]), {}, target)
    yield Sample((torch.randn(2, 3, *sizes), [3, 5, 4][:axes]), {}, target, {0: {0: "n", 2: "length"}})


class AdaptiveMaxPool(Translation, targets=("aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")):
    """Computes `adaptive_max_pool2d` and `adaptive_max_pool3d`; PyTorch makes `adaptive_max_pool1d` of the first.

    Returns the maximum of each window and the position of the first such element, counted over all pooled axes. The
    axes are pooled one by one from the last, so that of equal elements the first in memory is chosen. A window shorter
    than the longest repeats its last element.
    """

    def decompose(self, x: Any, output_size: Any) -> Any:
        counts = list(output_size)
        axes = len(counts)
        lengths = x.shape[-axes:]
        if all(isinstance(n, int) and c and n % c == 0 for n, c in zip(lengths, counts, strict=True)):
            aten = torch.ops.aten
            pool = aten.max_pool2d_with_indices if axes == 2 else aten.max_pool3d_with_indices
            return pool(x, [n // c for n, c in zip(lengths, counts, strict=True)])
        place: Any = None
        step: Any = 1
        for axis in reversed(range(x.dim() - axes, x.dim())):
            n, count = x.shape[axis], counts[axis - x.dim()]
            begins, ends = adaptive(n, count)
            places = torch.minimum(begins.unsqueeze(1) + torch.arange(longest(n, count)), ends.unsqueeze(1) - 1)
            read = windows(x, axis, places)
            which = read.argmax(axis + 1, keepdim=True)
            x = read.amax(axis + 1)
            here = which.squeeze(axis + 1) + begins.reshape([-1, *[1] * (x.dim() - axis - 1)])
            before = 0 if place is None else windows(place, axis, places).gather(axis + 1, which).squeeze(axis + 1)
            place = before + here * step
            step = step * n
        return x, place

    def samples(self) -> Iterator[Sample]:
        for axes in (2, 3):
            yield from adaptive_samples(
                f"aten::adaptive_max_pool{axes}d", axes, lambda sizes: torch.randint(0, 3, (2, *sizes)).double()
            )


class FractionalMaxPool(Translation, targets=("aten::fractional_max_pool2d", "aten::fractional_max_pool3d")):
    """Computes `fractional_max_pool2d` and `fractional_max_pool3d`: maxima over windows of one size at random
    positions.

    Window i of an axis begins at ⌊(i + u)·a⌋ - ⌊u·a⌋ for a random number u and a = (length - size) / (count - 1), the
    last window at length - size (Graham, "Fractional Max-Pooling", arXiv 1412.6071). For two axes the first random
    number is that of the last axis.
    """

    def decompose(self, x: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> Any:
        axes = random_samples.shape[-1]
        kernel, counts = (list(v) * axes if len(v) == 1 else list(v) for v in (kernel_size, output_size))
        batched = x if x.dim() == axes + 2 else x.unsqueeze(0)
        random_samples = random_samples if x.dim() == axes + 2 else random_samples[:1]  # as PyTorch
        sizes = batched.shape[2:]
        batch = list(batched.shape[:2])
        read = batched
        flat: Any = torch.zeros((1,) * (2 + 2 * axes), dtype=torch.int64)
        for axis, (length, size, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
            number = random_samples[..., axes - 1 - axis if axes == 2 else axis]
            places = _begins(number, length, size, count).unsqueeze(-1) + torch.arange(size)
            at = 2 + 2 * axis
            shaped = [*batch, *[1] * (2 * axis), count * size, *[1] * (axes - axis - 1)]
            full = [*batch, *read.shape[2:at], count * size, *read.shape[at + 1 :]]
            read = read.gather(at, places.reshape(shaped).expand(full))
            read = read.reshape([*full[:at], count, size, *full[at + 1 :]])
            step = math.prod(sizes[axis + 1 :])
            spread = [*batch, *[1] * (2 * axis), count, size, *[1] * (2 * (axes - axis - 1))]
            flat = flat + places.reshape(spread) * step
        order = [0, 1, *range(2, 2 + 2 * axes, 2), *range(3, 2 + 2 * axes, 2)]
        flat = flat.expand(read.shape).permute(order).reshape([*batch, *counts, -1])
        read = read.permute(order).reshape([*batch, *counts, -1])
        which = read.argmax(-1, keepdim=True)
        values, indices = read.amax(-1), flat.gather(-1, which).squeeze(-1)
        return (values, indices) if x.dim() == axes + 2 else (values.squeeze(0), indices.squeeze(0))

    def samples(self) -> Iterator[Sample]:
        for axes in (2, 3):
            target = f"aten::fractional_max_pool{axes}d"
            for kernel, counts in (([2, 3, 2], [4, 3, 3]), ([1, 2, 1], [1, 5, 2])):
                call = (kernel[:axes], counts[:axes], torch.rand(2, 3, axes))
                yield Sample((torch.randn(2, 3, *(8, 9, 7)[:axes]), *call), {}, target)
            twos, threes = [2] * axes, [3] * axes
            for batch in (1, 2):
                x = torch.randn(3, *(8, 9, 7)[:axes])
                yield Sample((x, twos, threes, torch.rand(batch, 3, axes)), {}, target)
            call = (twos, threes, torch.rand(2, 3, axes))
            if axes == 2:  # PyTorch fixes the batch for three axes
                dynamic = {0: {0: "n"}, 1: {0: "n"}}
                yield Sample((torch.randn(2, 3, *(8, 9, 7)[:axes]), *call), {}, target, dynamic)


def _begins(number: Any, length: Any, size: int, count: int) -> Any:
    """Returns where windows begin: [batch, channels, count], int64."""
    last = torch.zeros_like(number, dtype=torch.int64).unsqueeze(-1) + (length - size)
    if count == 1:
        return last
    slope = (length - size) / (count - 1)
    number = number.unsqueeze(-1)
    shifted = (number + torch.arange(count - 1, dtype=number.dtype)) * slope
    return torch.cat([shifted.to(torch.int64) - (number * slope).to(torch.int64), last], -1)
