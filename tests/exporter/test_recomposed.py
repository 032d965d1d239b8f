"""Lines that stop a trace are written otherwise while it runs, and the graph follows the module as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture


class Cell(nn.Module):
    """A state that is carried from row to row, rows appended and stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.zeros(x.shape[0], 4)
        rows = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            rows += [h]
        return torch.stack(rows, dim=-1), h


class Following(nn.Module):
    """It begins with the second row, and appends before what it appends is changed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best = x[:, 0]
        seen = []
        for i in range(1, x.shape[1]):
            seen.append(best)
            best = torch.maximum(best, x[:, i] - best)
        return torch.cat(seen, -1) + best.sum()


class Writes(nn.Module):
    """Rows written into a tensor, of which a part stays; the last axis of another tensor is read."""

    def __init__(self) -> None:
        super().__init__()
        self.__decay = 0.5  # a name of the class's own

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        count = x.shape[1]
        out = torch.ones(x.shape[0], count + 1, 2)
        state = torch.zeros_like(x[:, 0])
        for i in range(count):
            state = state * self.__decay + x[:, i]
            out[:, i] = state + y[:, :, i]
            state = state.relu()
        return out


class Branch(nn.Module):
    """What `super` stands in, and a decorator around it."""

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        super().train(False)
        y = x
        if x.sum() > 0:
            y = x * 2
        else:
            x = x - 1
        return x + y


def scaled(scale: float) -> Any:
    def apply(x: torch.Tensor) -> torch.Tensor:
        if x.max() > 0:
            x = x * scale
        return x

    return apply


class Closure(nn.Module):
    """The branch is in a function that holds a number."""

    def __init__(self) -> None:
        super().__init__()
        self.apply_it = scaled(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.apply_it(x)
        if x.min() < 0:
            x = x - 1
        return x


@pytest.mark.parametrize(
    ("net", "args", "dynamic"),
    [
        (Cell(), (torch.rand(2, 5, 3),), "x:0=batch,1=time"),
        (Writes(), (torch.rand(2, 5, 2), torch.rand(2, 2, 5)), "x:0=batch,1=time;y:0=batch,2=time"),
        (Following(), (torch.randn(2, 5, 3),), "x:0=batch,1=time"),
        (Branch(), (torch.randn(3, 4),), "x:0=batch"),
        (Closure(), (torch.randn(3, 4),), "x:0=batch"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_the_graph_follows_the_lines_as_they_were(net: nn.Module, args: tuple[Any, ...], dynamic: str) -> None:
    before = type(net).forward.__code__
    result = onnxsmith.export(net, args, dynamic=dynamic, strategy="torch-recomposed")
    assert result.ok, result.report.problems
    notes = result.report.part(Capture).notes
    assert any(note.startswith(f"{__file__}:") and "was traced as:" in note for note in notes), notes
    assert type(net).forward.__code__ is before


def test_it_is_tried_by_itself_and_the_first_failure_is_told() -> None:
    result = onnxsmith.export(Branch(), (torch.randn(3, 4),))
    assert result.ok
    assert "recomposed" in result.report.part(Capture).how
    assert "an `if` tests the value of a tensor" in result.report.part(Capture).tried[0]


class Printed(nn.Module):
    """No other way: its branch does more than assign."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            self.warned = True
            x = x * 2
        return x


def test_what_cannot_be_written_otherwise_stays_refused() -> None:
    with pytest.raises(OnnxsmithError):
        onnxsmith.export(Printed(), (torch.ones(3, 4),), dynamic="x:0=n", strategy="torch-recomposed")
