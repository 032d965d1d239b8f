"""`conj` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexConj(Translation):
    """The second part with the other sign."""

    targets = (
        "aten::_conj_physical",
        "aten::conj_physical",
    )

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        return torch.view_as_complex(torch.stack([real, -imaginary], -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3),), target="aten::conj_physical", dynamic={0: {0: "n"}})
        yield Sample((numbers(2, 3),), target="aten::_conj_physical")
