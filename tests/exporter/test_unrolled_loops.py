"""A loop whose turns follow from a size, and which is not rewritten, is named as what fixes the axis."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.frozen_code import located


class Cutter:
    """The linter does not look into its calls."""

    def __call__(self, length: int) -> list[tuple[int, int]]:
        ends = [0]
        for end in itertools.takewhile(lambda end: end < length + 4, itertools.count(4, 4)):
            ends.append(min(end, length))  # noqa: PERF401 — a loop is asked for
        return list(itertools.pairwise(ends))


class Stepped(nn.Module):
    """It reads the numbers of the windows from a list, element by element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        starts = []
        for start in range(0, x.shape[1], 4):
            starts.append((start, min(start + 4, x.shape[1])))  # noqa: PERF401 — a loop is asked for
        return torch.cat([x[:, first:last].softmax(1) for first, last in starts], 1)


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cutter = Cutter()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        starts = self.cutter(x.shape[1])
        found = []
        for first, last in starts:
            part = x[:, first:last]
            found.append(part.softmax(1))
        return torch.cat(found, 1)


class Fixed(nn.Module):
    """Its loop has three turns at every size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x + 1
        return x.reshape(5, 3)


def test_the_loops_of_a_graph_that_differs_are_named() -> None:
    result = onnxsmith.export(Windows(), (torch.rand(2, 8),), dynamic={"x": {1: "n"}}, strategy="torch-export")
    first, second = result.report.problems
    assert (first.id, second.id) == ("forward/loop-over-blocks", "verify/different")
    assert first.where == f"{__file__}:{Cutter.__call__.__code__.co_firstlineno + 2}"
    assert "has 2 iterations with the example, and 4 with a larger one" in first.why
    assert f"the loops at {Windows.forward.__code__.co_firstlineno + 3}" in first.why


def test_the_loops_that_fix_an_axis_are_named() -> None:
    built = module_program.build(TorchModel(Windows(), (torch.rand(2, 8),), {}), {"x": {1: "n"}})
    frozen = Problem("export/frozen-axis", "axis 1 of input 'x' (n) is fixed to 8 by the model")
    error = located(FrozenAxisError(frozen, [("x", 1)]), TorchModel(Windows(), (torch.rand(2, 8),), {}), built)
    assert "has 2 iterations with the example, and 4 with a larger one" in error.problem.why
    assert error.problem.fix.endswith("; or leave x:1 out of --dynamic")


def test_a_loop_of_fixed_turns_is_not_blamed() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Fixed(), (torch.rand(5, 3),), dynamic={"x": {0: "n"}}, strategy="torch-export")
    assert "turns" not in caught.value.problem.why


def test_a_turn_of_a_range_with_a_step_is_no_row() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Stepped(), (torch.rand(2, 8),), dynamic={"x": {1: "n"}}, strategy="torch-export")
    assert "row" not in str(caught.value.problem)
    assert "unfold" in caught.value.problem.fix
