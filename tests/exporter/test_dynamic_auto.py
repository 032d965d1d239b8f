"""`--dynamic auto` and torch's own ways to name dynamic axes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture


def shapes(module: nn.Module, *args: Any, dynamic: Any = "auto") -> dict[str, tuple[Any, ...]]:
    result = onnxsmith.export(module, args, dynamic=dynamic)
    assert result.ok, result.report.problems
    return {port.name: port.shape for port in result.report.part(Capture).inputs}


def test_every_axis_that_the_module_moves_stays_open() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Conv2d(4, 2, 1))
    assert shapes(net, torch.rand(2, 3, 9, 8)) == {"input": ("batch", 3, "input.2", "input.3")}


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.embed(ids) * mask.unsqueeze(-1)).sum(1)


def test_axes_that_go_together_get_one_name() -> None:
    found = shapes(Masked(), torch.randint(0, 10, (2, 5)), torch.ones(2, 5))
    assert found == {"ids": ("batch", "ids.1"), "mask": ("batch", "ids.1")}


def test_an_axis_that_a_line_fixes_is_left_fixed_and_told() -> None:
    class Loops(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for i in range(x.shape[1]):
                x = x + i
            return x

    result = onnxsmith.export(Loops(), (torch.rand(3, 4),), dynamic="auto", strategy="torch-export")
    (port,) = result.report.part(Capture).inputs
    assert port.shape == ("batch", 4)
    assert any("test_dynamic_auto.py" in note and "left fixed" in note for note in result.report.part(Capture).notes)


@pytest.mark.parametrize(
    "dynamic",
    [
        {"ids": {0: Dim("batch"), 1: Dim("length", max=64)}, "mask": {0: Dim("batch"), 1: Dim("length", max=64)}},
        [(Dim("batch"), Dim("length")), (Dim("batch"), Dim("length"))],
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
    ],
)
def test_torchs_own_dims_are_taken(dynamic: Any) -> None:
    found = shapes(Masked(), torch.randint(0, 10, (2, 5)), torch.ones(2, 5), dynamic=dynamic)
    assert found == {"ids": ("batch", "length"), "mask": ("batch", "length")}


def test_batch_is_the_axis_whose_entries_go_each_by_itself() -> None:
    assert shapes(nn.GRU(3, 2), torch.rand(4, 2, 3)) == {"input": ("input.0", "batch", 3)}
    assert shapes(nn.GRU(3, 2, batch_first=True), torch.rand(4, 2, 3)) == {"input": ("batch", "input.1", 3)}


class DoublesUntil(nn.Module):
    """Its loop goes by the sum of everything."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + int(x.sum() * 0)
        while y.sum() < 100:
            y = y * 2
        return y


def test_what_no_trace_follows_at_any_size_is_tried_with_fewer_axes_and_told() -> None:
    from onnxsmith.exporter.module.dynamic_axes import Probed

    probed = Probed(((("x", 0),), (("x", 1),), (("y", 0),)), (("x", 0),))
    assert probed.fewer().symbols == ["batch"]
    assert probed.fewer().fewer().symbols == []
    assert probed.without([("x", 0)]).fewer().symbols == ["y.0"]
    with pytest.raises(OnnxsmithError, match="forward/"):
        onnxsmith.export(DoublesUntil(), (torch.rand(4, 2),), dynamic="auto", strategy="torch-export")


def test_diagnose_takes_the_same_axes_as_export() -> None:
    from onnxsmith.base.report.parts.capture import Diagnosis

    net = nn.Linear(4, 2)
    for dynamic in ("auto", [{0: "batch"}], [(Dim("batch"), None)]):
        found = onnxsmith.diagnose(net, (torch.rand(3, 4),), dynamic=dynamic)
        assert [(axis.port, axis.axis, axis.name) for axis in found.report.part(Diagnosis).axes] == [
            ("input", 0, "batch")
        ]
