"""`--tolerance` of an export and of a simplification."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.exporter.tracing import rewriting


class Scale(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.fixture(autouse=True)
def _a_rewrite_that_is_off_by_half_a_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_users", {Scale: lambda self, x: x * 2.01})


def test_an_export_within_the_tolerance_asked_for_is_written(tmp_path: Path) -> None:
    x, file = torch.randn(4, 8), tmp_path / "m.onnx"
    assert onnxsmith.export(Scale(), (x,), output=file, strategy="torch-export").report.verdict is Verdict.DIFFERENT
    assert not file.exists()
    result = onnxsmith.export(
        Scale(), (x,), output=file, strategy="torch-export", verify=Verify(tolerance=0.02), save=Save(write_unsure=True)
    )
    assert result.report.verdict is not Verdict.DIFFERENT
    assert [output.tolerance for output in result.report.part(Verification).outputs] == [0.02]
    assert file.exists()
    narrow = onnxsmith.export(Scale(), (x,), strategy="torch-export", verify=Verify(tolerance=0.001))
    assert narrow.report.verdict is Verdict.DIFFERENT


def test_a_simplification_is_held_to_the_tolerance_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnxsmith.export(nn.Linear(4, 4), (torch.randn(2, 4),), output=file)
    result = onnxsmith.simplify(file, tmp_path / "s.onnx", verify=Verify(tolerance=1e-3), save=Save(write_unsure=True))
    assert [output.tolerance for output in result.report.part(Verification).outputs] == [1e-3]


@pytest.mark.parametrize("tolerance", [-1.0, float("inf"), float("nan")])
def test_a_tolerance_that_means_nothing_is_refused(tolerance: float, tmp_path: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(nn.Linear(4, 4), (torch.randn(2, 4),), verify=Verify(tolerance=tolerance))
    assert caught.value.problem.id == "verify/tolerance"
