"""Branches on the number of selected elements."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    _constrain_range_for_size,
)

import onnxsmith
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.seams.torch.selected_sizes import two_or_more
from onnxsmith.exporter.strategy_run import Maker


class LargestOfSelected(nn.Module):
    """As graph networks find the number of graphs after a selection of nodes."""

    def forward(self, x: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        kept = group[x.sum(1) > -100]
        if kept.numel() == 0:
            return x.double()  # another dtype, so that no If gives both sides
        count = int(kept.max()) + 1 if kept.numel() > 0 else 0
        return x.new_zeros(count, x.shape[1]).index_add(0, kept, x[x.sum(1) > -100])


def test_a_selection_that_is_not_empty() -> None:
    x, group = torch.rand(6, 3), torch.tensor([0, 0, 1, 1, 2, 2])
    axes = "x:0=nodes;group:0=nodes"
    with pytest.raises(onnxsmith.OnnxsmithError, match="if every input selects two elements or more") as caught:
        onnxsmith.export(LargestOfSelected(), (x, group), dynamic=axes)
    assert caught.value.problem.tried == ("--strategy torch-selected",)
    assert "selections of two elements" not in caught.value.problem.why  # it did not fail: it waits for a consent
    result = onnxsmith.export(LargestOfSelected(), (x, group), dynamic=axes, strategy="torch-selected")
    assert result.ok
    capture = result.report.part(Capture)
    assert "selections of two elements or more" in capture.how
    line = LargestOfSelected.forward.__code__.co_firstlineno + 2
    assumed = f"test_selected.py:{line}: the graph assumes that this line selects two elements or more"
    assert [one for one in capture.notes if assumed in one]


def test_a_strategy_that_gives_no_graph_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker.make

    def failing(maker: Maker, strategy: Any, *others: Any) -> Any:
        if maker.settings.strategy == "torch-selected":
            raise problem("export/capture-failed", "the accepted trace failed")
        return make(maker, strategy, *others)

    monkeypatch.setattr(Maker, "make", failing)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(LargestOfSelected(), (torch.rand(6, 3), torch.tensor([0, 0, 1, 1, 2, 2])))
    assert "--strategy" not in caught.value.problem.fix
    assert "torch.export, selections of two elements or more" in caught.value.problem.why


def test_only_what_two_elements_decide_is_assumed() -> None:
    shapes, assumed = ShapeEnv(), []
    count = shapes.create_unbacked_symint()
    _constrain_range_for_size(count)
    with two_or_more(lambda: assumed.append(1)):
        assert count > 0
        assert count != 1
        with pytest.raises(GuardOnDataDependentSymNode):
            assert count > 3
    assert len(assumed) == 2
    with pytest.raises(GuardOnDataDependentSymNode):
        assert count > 1
