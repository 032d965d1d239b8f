"""Tensors without elements, on their way into a graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict


class Of(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.function(x, y)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x * x).sum(-1).sqrt(),
        lambda x, y: torch.cat([x.mean(-1), y[0]]),
        lambda x, y: x.acos(),
        lambda x, y: x.all(-1),
        lambda x, y: torch.cat([y[:, :0], y], 1),
        lambda x, y: y[1:1] + 1,
        lambda x, y: x @ torch.zeros(0, 4),
    ],
    ids=["sum", "mean", "output", "all", "cat", "slice", "matmul"],
)
def test_what_has_no_elements_agrees(function: Callable[..., torch.Tensor]) -> None:
    result = onnxsmith.export(Of(function), (torch.randn(3, 0), torch.randn(2, 3)), strategy="torch-export")
    assert result.report.verdict is Verdict.DONE


class AnySet(torch.nn.Module):
    """Over all axes, and over an axis that may be empty."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x > 0.5).any(), (x > 0.5).any(0)


def test_any_of_no_elements_is_false() -> None:
    result = onnxsmith.export(AnySet(), (torch.rand(3, 2),), dynamic="x:0=n")
    assert result.ok
    assert 0 in result.report.part(Verification).sizes["n"]
