"""The fixture `compared_once`: one comparison, which a wrong graph fails."""

from __future__ import annotations

import pytest
import torch

import onnxsmith
from onnxsmith.report.parts.verification import Verification
from onnxsmith.report.verdict import Verdict

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
