"""`nextafter`: the next float in the direction of another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._binary import exponent, table
from onnxsmith.exporter.translations._constants import look_up
from onnxsmith.exporter.translations.base import Sample, Translation


class Nextafter(Translation):
    """A number and its neighbour differ by the last bit of the larger one's binade. Towards zero that is a binade lower
    from a power of two; the smallest numbers all lie one apart. From infinity it is the largest number."""

    targets = ("aten::nextafter", "prims::nextafter")

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        if dtype not in (torch.float32, torch.float64):
            return NotImplemented
        x, towards = torch.broadcast_tensors(self_.to(dtype), other.to(dtype))  # type: ignore[no-untyped-call]
        outward = (towards > x) == (x >= 0)
        found, power = exponent(x)
        least, powers = table(x)
        digits = {torch.float32: 23, torch.float64: 52}[dtype]
        lower = ((power == x.abs()) & ~outward).to(torch.int64)
        gap = look_up(powers, (found - lower - digits - least).clamp(min=0))
        up = towards > x
        near = torch.where(up, x + gap, x - gap)
        most = torch.finfo(dtype).max
        near = torch.where(x.isinf(), torch.where(up, torch.full_like(x, -most), most), near)
        near = torch.where((near == 0) & (x < 0), -0.0, near)
        near = torch.where(x == towards, towards, near)
        return torch.where(x.isnan() | towards.isnan(), float("nan"), near)

    def samples(self) -> Iterator[Sample]:
        inf, nan = float("inf"), float("nan")
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 1e30, 1.1754943508222875e-38, 1e-45, -1e-45, nan]
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        for dtype in (torch.float32, torch.float64):
            given = torch.tensor(values, dtype=dtype)
            yield Sample((given[:, None], torch.tensor([-inf, inf, 0.0, 1.0], dtype=dtype)))
        yield Sample((torch.tensor(2.0), torch.tensor(0.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))
