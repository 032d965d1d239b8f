"""Creates tensors of evenly spaced and of random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class Linspace(Translation):
    """Computes `linspace` whose ends are tensors or whose number of steps is a dynamic size.

    As PyTorch rounds, the first half is start + i·step, the second end - (n - 1 - i)·step. Integer results and calls
    with plain numbers alone are left to PyTorch's exporter. A trace of the operator would take the example's number of
    steps, so calls of the function are replaced before the trace.
    """

    targets = ("aten::linspace.Tensor_Tensor", "aten::linspace.Tensor_Scalar", "aten::linspace.Scalar_Tensor")
    functions = (torch.linspace,)

    def decompose(self, start: Any, end: Any, steps: Any, *, dtype: torch.dtype | None = None, **others: Any) -> Any:
        dtype = dtype or torch.get_default_dtype()
        if not dtype.is_floating_point or others.get("out") is not None or others.get("requires_grad"):
            return NotImplemented
        if not any(isinstance(one, torch.Tensor | torch.SymInt | torch.SymFloat) for one in (start, end, steps)):
            return NotImplemented
        kind: dict[str, Any] = {"dtype": dtype, "device": others.get("device")}
        first, last = (
            one.to(dtype).reshape(1) if isinstance(one, torch.Tensor) else torch.scalar_tensor(one, **kind).reshape(1)
            for one in (start, end)
        )
        if isinstance(steps, int) and steps < 2:
            return first[:steps]
        count, half = (torch.scalar_tensor(one, **kind) for one in (steps, steps // 2))
        step = (last - first) / (count - 1).clamp(min=1)
        number = torch.arange(steps, **kind)
        begins = (number < half) | (number == 0)
        return torch.where(begins, first + step * number, last - step * (count - 1 - number))

    def samples(self) -> Iterator[Sample]:
        start, end = torch.tensor(-1.5), torch.tensor(2.0)
        for steps in (0, 1, 2, 7, 50):
            yield Sample((start, end, steps))
        yield Sample((start, 2.0, 5), {"dtype": torch.float64}, "aten::linspace.Tensor_Scalar")
        yield Sample((-1, end, 5), {}, "aten::linspace.Scalar_Tensor")
        yield Sample((torch.tensor(3), torch.tensor(9), 4))
        yield Sample((torch.randn(6),), dynamic={0: {0: "n"}}, around=_centres)
        yield Sample((torch.randn(6),), dynamic={0: {0: "n"}}, around=_ends)


def _centres(_: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.linspace(0.5, x.shape[0] - 0.5, x.shape[0], dtype=x.dtype, device=x.device)


def _ends(_: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.linspace(-1, 1, steps=x.shape[0])


class Uniform(Translation, targets="aten::uniform"):
    """Computes `uniform`, numbers drawn evenly from a range, by ONNX's RandomUniformLike."""

    def decompose(self, x: Any, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
        del generator
        return onnx_op("RandomUniformLike", x, low=float(low), high=float(high))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), 2.0, 2.0))
        yield Sample((torch.randn(3, dtype=torch.float64), 2.0, 2.0), dynamic={0: {0: "n"}})
