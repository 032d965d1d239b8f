"""A trace repeats what the module gave for its example. If no other input can decide, nothing is verified."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification


class Hashed(torch.nn.Module):
    """Multiplies its input by a number that depends on every bit of it, outside of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (int(hashlib.md5(x.numpy().tobytes()).hexdigest()[:4], 16) % 7)


@pytest.mark.torch
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_constant_of_the_example_is_not_verified(seed: int, tmp_path: Path) -> None:
    torch.manual_seed(seed)
    target = tmp_path / "m.onnx"
    try:
        report = onnxsmith.export(Hashed(), (torch.rand(4),), output=target).report
    except onnxsmith.OnnxsmithError as error:
        assert error.problem.id.startswith(("forward/", "export/", "verify/"))  # noqa: PT017 — either way nothing is written
    else:
        assert report.verdict.exit_code != 0
        checked = [part for part in report.parts if isinstance(part, Verification)]
        assert all("could decide about output" in sentence for part in checked for sentence in part.unsure)
    assert not target.exists()
