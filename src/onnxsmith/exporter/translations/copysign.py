"""`copysign`: the size of one number with the sign of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Copysign(Translation):
    """The absolute value, negated where `signbit` says so. Integers become the default float."""

    targets = ("aten::copysign.Tensor", "aten::copysign.Scalar")

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        size = self_.to(dtype).abs()
        if isinstance(other, torch.Tensor):
            return torch.where(torch.signbit(other), -size, size)
        return -size if math.copysign(1.0, other) < 0 else size

    def samples(self) -> Iterator[Sample]:
        signs = torch.tensor([-2.0, -0.0, 0.0, 1.5])
        yield Sample((torch.randn(3, 4), signs), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(3, 1, dtype=torch.float64), signs))
        yield Sample((torch.tensor([-3, 4, 0, 5]), signs))
        yield Sample((torch.tensor([-3, 4]), torch.tensor([1, -1], dtype=torch.int32)))
        yield Sample((torch.tensor([True, False]), torch.tensor([True, False])))
        yield Sample((torch.randn(3), -0.0), target="aten::copysign.Scalar")
        yield Sample((torch.randint(-3, 3, (3,)), 2), target="aten::copysign.Scalar")
        yield Sample((torch.tensor(-0.0), torch.tensor(1.0)))
        yield Sample((torch.zeros(0, 4), signs))
