"""A fixed axis: an export gives the line and the code that a diagnosis gives, and offers code that was tried."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Diagnosis
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.module.run_observation import observe
from onnxsmith.exporter.tracing.frozen_code import suspicions


class Literal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(5, 3) + 1


class Number(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = int(x.shape[0])
        return x.reshape(n, 3, 1)


class OtherShapes(nn.Module):
    """The sides have different shapes, so that torch.where computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 2:
            return x[:, :1]
        return x * 2


class TwoLiterals(nn.Module):
    """Only the first 2 is the size of the axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 4, 2, 4).sum(2)


def test_code_that_fits_no_other_size_is_not_offered() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(TwoLiterals(), (torch.rand(2, 8, 4),), dynamic="x:0=n", strategy="torch-export")
    assert "write line" not in caught.value.problem.fix


@pytest.mark.parametrize("module", [Literal(), Number()])
def test_an_export_says_what_a_diagnosis_says(module: nn.Module) -> None:
    example = (torch.randn(5, 3),)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, example, dynamic="x:0=n", strategy="torch-export")
    said = caught.value.problem
    assert said.id == "export/frozen-axis"
    found = onnxsmith.diagnose(module, example, dynamic="x:0=n").report.part(Diagnosis).findings[0]
    assert said.where == found.problem.where
    assert found.code.strip() in said.fix
    assert found.problem.what in said.why


@pytest.mark.parametrize("positive", [True, False])
def test_code_that_computes_something_else_is_not_offered(positive: bool) -> None:
    model = TorchModel(OtherShapes(), (torch.ones(5, 3) * (1 if positive else -1),))
    built = programs.build(model, {})
    (found,) = (one for one in suspicions(model, built, observe(model)) if "branch" in one.finding.problem.id)
    assert found.finding.code == ""
