"""`cross_entropy_loss` with probabilities for targets, or with smoothed labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.base.seams.torch.operators import composite
from onnxsmith.exporter.translations.base import Sample, Translation


class CrossEntropyLoss(Translation):
    """What PyTorch makes of it: a log-softmax, and from there sums over classes or the loss of single labels. One
    target a row is ONNX's SoftmaxCrossEntropyLoss, which PyTorch's exporter writes."""

    targets = ("aten::cross_entropy_loss",)

    def decompose(self, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        smoothing = args[3] if len(args) > 3 else kwargs.get("label_smoothing", 0.0)
        if not target.dtype.is_floating_point and not smoothing and x.dim() > 1:
            return NotImplemented
        return composite(torch.ops.aten.cross_entropy_loss.default, x, target, *args, **kwargs)

    def samples(self) -> Iterator[Sample]:
        for reduction in (0, 1, 2):
            for weight in (None, torch.rand(5)):
                for shape in ((4, 5), (2, 5, 3)):
                    x = torch.randn(shape)
                    yield Sample((x, torch.randn(shape).softmax(1), weight, reduction))
                    yield Sample((x, torch.randn(shape).softmax(1), weight, reduction, -100, 0.2))
                    target = torch.randint(0, 5, (shape[0], *shape[2:]))
                    yield Sample((x, target, weight, reduction, 3, 0.2))
                    yield Sample((x, target, weight, reduction, 3))
                yield Sample((torch.randn(5), torch.tensor(2), weight, reduction))
                yield Sample((torch.randn(5), torch.randn(5).softmax(0), weight, reduction))
        dynamic = {0: {0: "n"}, 1: {0: "n"}}
        yield Sample((torch.randn(4, 5), torch.randn(4, 5).softmax(1)), dynamic=dynamic)
        yield Sample((torch.randn(4, 5), torch.randint(0, 5, (4,)), None, 1, 3, 0.1), dynamic=dynamic)
