"""The product of two matrices of 8-bit integers, in int32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class IntMm(Translation):
    """MatMulInteger."""

    targets = ("aten::_int_mm",)

    def decompose(self, a: Any, b: Any) -> Any:
        return onnx_op("MatMulInteger", a, b, dtype=torch.int32, shape=[a.shape[0], b.shape[1]])

    def samples(self) -> Iterator[Sample]:
        a = torch.randint(-128, 128, (32, 16), dtype=torch.int8)
        b = torch.randint(-128, 128, (16, 8), dtype=torch.int8)
        yield Sample((a, b))
