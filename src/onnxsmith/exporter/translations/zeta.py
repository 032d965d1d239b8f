"""`special.zeta`: the Hurwitz zeta function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._gamma import hurwitz
from onnxsmith.exporter.translations.base import Sample, Translation


class Zeta(Translation):
    """By `_gamma.hurwitz`, in float64."""

    targets = ("aten::special_zeta", "prims::zeta")

    def decompose(self, self_: Any, other: Any) -> Any:
        tensors = [one for one in (self_, other) if isinstance(one, torch.Tensor)]
        dtype = torch.result_type(self_, other)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        like = tensors[0]
        s, q = (
            one.to(torch.float64)
            if isinstance(one, torch.Tensor)
            else torch.full((), float(one), dtype=torch.float64, device=like.device)
            for one in (self_, other)
        )
        return hurwitz(s, q).to(dtype)

    def samples(self) -> Iterator[Sample]:
        s = torch.tensor([1.5, 2.0, 3.0, 10.0, 1.0, 0.5])
        q = torch.tensor([0.5, 1.0, 7.5, 30.0, 0.0, -1.0])
        yield Sample((s, q[:, None]), dynamic={1: {0: "n"}})
        yield Sample((s.double(), q.double()[:, None]))
        yield Sample((torch.tensor([2.0, 3.0]), torch.tensor([[-0.5], [-7.3]])))
        yield Sample(
            (torch.tensor([2.0, 3.0, 4.0]).double(), torch.tensor([[-2345.25], [-1e-9], [-5000.875]]).double())
        )
        yield Sample((torch.tensor([2, 3]), torch.tensor([4, 5])))
        yield Sample((s, 2.5), target="aten::special_zeta.other_scalar")
        yield Sample((2.5, q.abs() + 1), target="aten::special_zeta.self_scalar")
        yield Sample((torch.tensor(2.0), torch.tensor(1.0)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))
