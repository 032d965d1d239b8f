"""`adaptive_avg_pool1d`, `adaptive_avg_pool2d` and `adaptive_avg_pool3d`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._windows import adaptive, longest, windows
from onnxsmith.exporter.translations.base import Sample, Translation


class AdaptiveAvgPool(Translation):
    """Averages over the requested number of windows, whose lengths differ by one if the size is not a multiple of it.

    For a multiple it is an ordinary pool, for one window the mean. Otherwise every window is read with the length of
    the longest, and positions after its end count as 0.
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
            target = f"aten::adaptive_avg_pool{axes}d"
            sizes = (8, 7, 6)[:axes]
            for count in ([3, 5, 4], [1, 1, 1], [8, 7, 1], [4, 7, 3], [10, 9, 2]):
                yield Sample((torch.randn(2, 3, *sizes), count[:axes]), {}, target)
                yield Sample((torch.randn(2, *sizes, dtype=torch.float64), count[:axes]), {}, target)
            yield Sample((torch.randn(2, 3, *sizes), [3, 5, 4][:axes]), {}, target, {0: {0: "n", 2: "length"}})
