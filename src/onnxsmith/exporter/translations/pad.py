"""Padding by its general name: by the edge, where it takes places away on some side, and of complex numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.replication_pad import ReplicationPad


class Pad(Translation):
    """Pads by the edge as in `replication_pad.py`, and complex numbers part by part; leaves other calls to PyTorch's
    exporter."""

    targets = ("aten::pad",)

    def decompose(self, x: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
        if x.dtype.is_complex:
            number = complex(value or 0)
            fillings = (number.real, number.imag) if mode == "constant" else (None, None)
            parts = zip(torch.view_as_real(x).unbind(-1), fillings, strict=True)
            filled = [functional.pad(part, list(pad), mode, filling) for part, filling in parts]
            return torch.view_as_complex(torch.stack(filled, -1))
        return ReplicationPad().decompose(x, pad) if mode == "replicate" else NotImplemented

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 5, 4)
        yield Sample((x[0], [-2, 3], "replicate"))
        yield Sample((x, [-1, 2, 1, -5], "replicate"), dynamic={0: {0: "n"}})
        yield Sample((x, [1, 2, 0, 1], "replicate"))
        yield Sample((x, [1, 2, 0, 1], "constant", 0.5))
        yield Sample((x, [1, 2, 0, 1], "reflect"))
        z = torch.randn(2, 3, 5, dtype=torch.complex64)
        yield Sample((z, [0, 0, 0, 1]), dynamic={0: {2: "n"}})
        yield Sample((z, [1, -2], "constant", 1.5))
        yield Sample((z, [2, 1], "reflect"))
