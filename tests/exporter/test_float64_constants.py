"""Python floats in a float64 model keep their digits."""

from __future__ import annotations

import torch

import onnxsmith
from onnxsmith.report.base import Verdict


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 0.1, torch.full_like(x, 1e300), torch.where(x > 0, x, 1 / 3)


def test_a_float_in_a_float64_model_is_not_rounded_to_float32() -> None:
    x = torch.randn(5, dtype=torch.float64)
    result = onnxsmith.export(Scaled(), x, strategy="torch-export", verify=False)
    session = onnxsmith.run(result.model, {"x": x.numpy()})
    for want, got in zip(Scaled()(x), session.outputs.values(), strict=True):
        assert want.equal(torch.from_numpy(got))
    assert result.report.verdict is Verdict.DONE
