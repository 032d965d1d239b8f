"""`gcd` and `lcm` of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations.base import Sample, Translation


class Gcd(Translation):
    """Euclid's algorithm on all elements at once, until no remainder is left."""

    targets = ("aten::gcd", "prims::gcd")

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        wide = (self_.to(torch.int64).abs(), other.to(torch.int64).abs())

        def step(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
            done = b == 0
            return torch.where(done, a, b), torch.where(done, b, a.remainder(torch.where(done, 1, b)))

        state = torch.broadcast_tensors(*wide)  # type: ignore[no-untyped-call]
        return loop(lambda a, b: any_of(b != 0), step, state)[0].to(dtype)

    def samples(self) -> Iterator[Sample]:
        def numbers(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.randint(-120, 120, shape).to(dtype)

        yield Sample((numbers(4, 5), numbers(5)), dynamic={0: {0: "n"}})
        yield Sample((numbers(5, dtype=torch.int32), numbers(5, dtype=torch.int8)))
        yield Sample((numbers(1, 5, dtype=torch.uint8), numbers(2, 1)))
        yield Sample((torch.tensor(0), torch.tensor(0)))
        yield Sample((torch.tensor([0, 2971215073, -4807526976]), torch.tensor([-7, 4807526976, 2971215073])))
        yield Sample((numbers(0, 3), numbers(3)))
