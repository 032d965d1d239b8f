"""The fixture `compared_once`: one comparison, which a wrong graph fails; and `assert_follows` at other sizes."""

from __future__ import annotations

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from tests.exports import assert_follows

pytestmark = pytest.mark.usefixtures("compared_once")


class Scaled(torch.nn.Module):
    """Doubles on the CPU as traced, and triples when it is called afterwards."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (2.0 if torch.compiler.is_compiling() else 3.0)


def test_a_graph_is_compared_on_the_example_alone() -> None:
    result = onnxsmith.export(torch.nn.Linear(3, 2), (torch.randn(4, 3),), dynamic={"input": {0: "n"}})
    assert result.ok, result.report.headline
    assert result.report.part(Verification).runs == ("the example",)


def test_a_wrong_graph_is_refused() -> None:
    result = onnxsmith.export(Scaled(), (torch.ones(2),), strategy="torch-export")
    assert result.report.verdict is Verdict.FAILED or not result.ok
    assert result.model is None


class Longer(torch.nn.Module):
    """Of more than four rows, it gives another number, and other numbers of more than eight."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x * (2.0 if len(x) <= 8 else 3.0), 1 if len(x) <= 4 else 2


class Shorter(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x * 2.0, x.shape[0] // x.shape[0]


def test_a_graph_that_is_wrong_at_another_size_is_seen() -> None:
    model = onnxsmith.export(Shorter(), (torch.ones(3),), dynamic="x:0=n", strategy="torch-export").model
    assert model is not None
    assert_follows(model, Longer(), (torch.rand(2),), (torch.rand(4),))
    for rows in (5, 9):
        with pytest.raises(AssertionError, match=rf"\({rows},\)"):
            assert_follows(model, Longer(), (torch.rand(2),), (torch.rand(rows),))
