"""A transposed convolution whose output padding is as long as a stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Convolution(Translation):
    """ONNX Runtime takes no output padding that reaches a stride. The whole result, without any padding, is then cut
    to what it leaves, or filled up with the bias. Every other convolution is left to PyTorch's exporter."""

    targets = ("aten::convolution",)

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
