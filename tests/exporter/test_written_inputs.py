"""What forward writes to: a note where the write is lost, none where it also returns what it wrote."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture


class Step(nn.Module):
    """Writes the next state into its input."""

    def __init__(self, *, returns: bool) -> None:
        super().__init__()
        self.returns = returns
        self.net = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> Any:
        state.mul_(0.9).add_(self.net(x))
        return (x + state, state) if self.returns else x + state


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("returns", [True, False])
def test_a_note_where_the_write_is_lost(returns: bool) -> None:
    torch.manual_seed(0)
    example = (torch.randn(3, 4), torch.randn(3, 4))
    result = onnxsmith.export(Step(returns=returns).eval(), example, dynamic={"x": {0: "n"}, "state": {0: "n"}})
    assert result.ok
    said = [note for note in result.report.part(Capture).notes if "writes to its input 'state'" in note]
    assert bool(said) is not returns
