"""`lcm` of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Lcm(Translation):
    """The product over the greatest common divisor; 0 where both are 0."""

    targets = ("aten::lcm",)

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        wide = self_.to(torch.int64)
        divisor = torch.gcd(wide, other.to(torch.int64))
        return (wide.div(divisor.clamp(min=1), rounding_mode="trunc") * other).abs().to(dtype)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randint(-99, 99, (4, 5)), torch.randint(-99, 99, (5,))), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(-9, 9, (4,), dtype=torch.int32), torch.randint(-9, 9, (4,), dtype=torch.int16)))
        yield Sample((torch.tensor(0), torch.tensor([0, 3])))
        yield Sample((torch.zeros(0, 3, dtype=torch.int64), torch.tensor(4)))
