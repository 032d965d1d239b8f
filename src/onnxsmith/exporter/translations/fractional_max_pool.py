"""`fractional_max_pool2d` and `fractional_max_pool3d`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class FractionalMaxPool(Translation):
    """Maxima over windows of one size whose beginnings a random number shifts (Graham, "Fractional Max-Pooling",
    arXiv 1412.6071): window i of an axis begins at ⌊(i + u)·a⌋ - ⌊u·a⌋, a = (length - size) / (count - 1), the last
    one at length - size. For two axes the first number is the last axis's."""

    targets = ("aten::fractional_max_pool2d", "aten::fractional_max_pool3d")

    def decompose(self, x: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> Any:
        axes = random_samples.shape[-1]
        kernel, counts = (list(v) * axes if len(v) == 1 else list(v) for v in (kernel_size, output_size))
        batched = x if x.dim() == axes + 2 else x.unsqueeze(0)
        random_samples = random_samples if x.dim() == axes + 2 else random_samples[:1]  # PyTorch takes the first
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
            step = 1
            for other in sizes[axis + 1 :]:
                step = step * other
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
            yield Sample(
                (torch.randn(3, *(8, 9, 7)[:axes]), [2] * axes, [3] * axes, torch.rand(1, 3, axes)), {}, target
            )
            yield Sample(
                (torch.randn(3, *(8, 9, 7)[:axes]), [2] * axes, [3] * axes, torch.rand(2, 3, axes)), {}, target
            )
            call = ([2] * axes, [3] * axes, torch.rand(2, 3, axes))
            dynamic = {0: {0: "n"}, 1: {0: "n"}}
            if axes == 2:  # PyTorch itself fixes the batch for three
                yield Sample((torch.randn(2, 3, *(8, 9, 7)[:axes]), *call), {}, target, dynamic)


def _begins(number: Any, length: Any, size: int, count: int) -> Any:
    """[batch, channels, count], int64."""
    last = torch.zeros_like(number, dtype=torch.int64).unsqueeze(-1) + (length - size)
    if count == 1:
        return last
    slope = (length - size) / (count - 1)
    number = number.unsqueeze(-1)
    shifted = (number + torch.arange(count - 1, dtype=number.dtype)) * slope
    return torch.cat([shifted.to(torch.int64) - (number * slope).to(torch.int64), last], -1)
