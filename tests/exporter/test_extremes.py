"""Python's min and max of sizes in a traced module."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.rewrites.extremes import Extremes


class Best(nn.Module):
    """The best three of the boxes above a score: of fewer, all."""

    def forward(self, scores: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = scores > 0.5
        found, order = scores[kept].topk(min(3, scores[kept].size(0)))
        return found, boxes[kept][order]


class Window(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        length = x.shape[1]
        return x[:, : min(length, 8)].cumsum(1), x.new_zeros(max([length, 6, x.shape[0]]))


class Half(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : max(1, x.shape[1] // 2)].cumsum(1)


class Levels(nn.Module):
    """The best places of a map that was halved four times: torch traces it for sizes of 17 and more, where there are
    always 3."""

    def __init__(self, least: Callable[[int, int], int]) -> None:
        super().__init__()
        self.least = least
        self.steps = nn.Sequential(*[nn.Conv2d(1, 1, 3, 2, 1) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.steps(x).flatten(1)
        return found.topk(self.least(3, found.shape[1]), 1)[0]


def least(a: int, b: int) -> int:
    return min(a, b)


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class OwnMin(nn.Module):
    """Keeps what these functions do otherwise: other numbers, keys, defaults, one size only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        of_words = len(max("ab", "b", key=len)) + min((), default=2) + min(2.5, 3)
        return x[:, : min(4, x.shape[1])] * of_words + max(rows, 1)


def test_a_selection_of_fewer_than_asked_for() -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(
        Best(), (torch.rand(20), torch.rand(20, 4)), dynamic="scores:0=n;boxes:0=n", strategy="torch-export"
    )
    assert result.ok
    assert {1, 20} <= set(result.report.part(Verification).sizes["n"])
    assert "Min" in {node.op_type for node in result.model.graph}


@pytest.mark.parametrize(("module", "sizes"), [(Window(), {1, 12, 257}), (OwnMin(), {12}), (Half(), {1, 12})])
def test_sizes_on_both_sides_of_a_number(module: nn.Module, sizes: set[int]) -> None:
    result = onnxsmith.export(module, (torch.rand(2, 12),), dynamic="x:0=rows,1=length", strategy="torch-export")
    assert result.ok
    assert sizes <= set(result.report.part(Verification).sizes["length"])


def test_what_is_known_of_traced_sizes_alone_is_not_known() -> None:
    result = onnxsmith.export(Levels(least), (torch.rand(2, 1, 64, 96),), dynamic="x:0=b,2=h,3=w")
    assert result.ok
    assert "Min" in {node.op_type for node in result.model.graph}


def test_the_check_runs_on_the_other_side_of_a_branch() -> None:
    """The trace keeps 3 places, as the example has more."""
    example, axes = (torch.rand(2, 1, 64, 96),), "x:0=b,2=h,3=w"
    result = onnxsmith.export(Levels(lambda a, b: a if a <= b else b), example, dynamic=axes, strategy="torch-export")
    assert result.report.verdict is Verdict.DIFFERENT


def test_the_functions_are_those_of_python_afterwards() -> None:
    onnxsmith.export(Window(), (torch.rand(2, 12),), dynamic="x:1=length")
    assert min is builtins.min
    assert "min" not in globals()


def test_a_module_that_is_imported_at_its_first_use_stays_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages leave such objects in `sys.modules`; what they stand for may not be installed."""

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise ImportError(f"{name}: the package behind this module is not installed")

    home = __name__.partition(".")[0]
    monkeypatch.setitem(sys.modules, f"{home}.lazily", Lazy(f"{home}.lazily"))
    with ExitStack() as stack:
        Extremes().apply(Doubled(), stack)
