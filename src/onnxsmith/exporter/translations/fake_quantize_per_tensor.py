"""Fake quantisation with one scale: quantises and dequantises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import dequantize, dtype_of, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class FakeQuantizePerTensor(Translation):
    """QuantizeLinear, a Clip for a narrow range, and DequantizeLinear."""

    targets = ("aten::fake_quantize_per_tensor_affine",)
    functions = (torch.fake_quantize_per_tensor_affine,)

    def decompose(self, x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
        dtype = dtype_of(low, high)
        if dtype is None:
            return NotImplemented
        q = quantize(x, scale, zero_point, low, high, dtype)
        return dequantize(q, scale, zero_point, low=low, high=high, dtype=x.dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        yield Sample((x, 1.0, 0, -128, 127), dynamic={0: {0: "n"}}, around=_by_function)
        yield Sample((x, 0.5, 4, 0, 127))
        yield Sample((x, 0.25, 0, -8, 7))
        yield Sample(
            (x, torch.tensor([0.5]), torch.tensor([4], dtype=torch.int32), 0, 255),
            target=self.targets[0] + ".tensor_qparams",
        )


def _by_function(_: Any, *args: Any) -> Any:
    """Calls the function of torch, as its modules do: torch has no shapes for the operator with a symbolic size."""
    return torch.fake_quantize_per_tensor_affine(*args)
