"""`adaptive_max_pool2d` and `adaptive_max_pool3d`; the one of one axis is made of the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._windows import adaptive, longest, windows
from onnxsmith.exporter.translations.base import Sample, Translation


class AdaptiveMaxPool(Translation):
    """The maximum of each window and the place of the first such element, counted over all pooled axes.

    Axis by axis, the last one first, so that of equal elements the one stays that comes first in memory. A window that
    is shorter than the longest has its last element again.
    """

    targets = ("aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")

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
            target = f"aten::adaptive_max_pool{axes}d"
            sizes = (8, 7, 6)[:axes]
            for count in ([3, 5, 4], [1, 1, 1], [8, 7, 1], [4, 7, 3], [10, 9, 2]):
                yield Sample((torch.randn(2, 3, *sizes), count[:axes]), {}, target)
                yield Sample((torch.randint(0, 3, (2, *sizes)).double(), count[:axes]), {}, target)
            yield Sample((torch.randn(2, 3, *sizes), [3, 5, 4][:axes]), {}, target, {0: {0: "n", 2: "length"}})
