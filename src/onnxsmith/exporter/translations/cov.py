"""`cov`: the covariance of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Cov(Translation):
    """Σ w (x - μ)(x - μ)ᵀ / (Σ w - correction · Σ w a / Σ w), rows being variables and columns observations; w is the
    product of how often an observation counts and of how much, a how much alone (as numpy.cov defines it). Whether a
    weight is negative, which PyTorch refuses, is a question about values and not asked here."""

    targets = ("aten::cov",)
    functions = (torch.cov, torch.Tensor.cov)

    def decompose(self, x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
        rows = x.reshape(1, -1) if x.dim() < 2 else x
        dtype = rows.dtype if rows.dtype.is_floating_point or rows.dtype.is_complex else torch.get_default_dtype()
        rows = rows.to(dtype)
        weight = None if fweights is None else fweights.to(dtype)
        if aweights is not None:
            weight = aweights.to(dtype) if weight is None else weight * aweights.to(dtype)
        if weight is None:
            total: Any = torch.full((), rows.shape[1], dtype=dtype)
            centred = rows - rows.mean(1, keepdim=True)
            product = centred @ centred.mT.conj()
        else:
            total = weight.sum()
            centred = rows - (rows * weight).sum(1, keepdim=True) / total
            product = (centred * weight) @ centred.mT.conj()
        lost = correction if aweights is None else correction * (weight * aweights.to(dtype)).sum() / total
        # a row for each variable: a single number would be taken into the product by ONNX Runtime, as a float32
        return (product / (total - lost).clamp(min=0).expand(rows.shape[0], 1)).squeeze()

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 7)
        yield Sample((x,), dynamic={0: {1: "n"}}, around=torch_cov)
        yield Sample((x.double(),), {"correction": 0}, around=torch_cov)
        yield Sample((torch.randn(5),), around=torch_cov)
        yield Sample((x, torch.rand(7), torch.randint(1, 4, (7,))), around=weighted)
        yield Sample((torch.randint(-5, 5, (2, 4)),), around=torch_cov)


def torch_cov(_: Any, x: torch.Tensor, **options: Any) -> torch.Tensor:
    """By the function, which is what a module calls."""
    return torch.cov(x, **options)


def weighted(_: Any, x: torch.Tensor, weight: torch.Tensor, often: torch.Tensor) -> torch.Tensor:
    """With weights that are not negative."""
    return torch.cov(x, aweights=weight.abs() + 0.1, fweights=often.abs() + 1)
