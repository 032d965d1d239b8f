"""An exported graph that differs after its conversion to the requested opset names the operators that changed."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.graph.surgery.lowerings.operands import AttributesForOperands
from onnxsmith.graph.surgery.node_insertion import Inserter


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def test_axes_mistaken_on_the_way_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = AttributesForOperands.lower

    def mistaken(change: AttributesForOperands, node: ir.Node, write: Inserter) -> str:
        reason = right(change, node, write)
        node.attributes["axes"] = ir.AttrInt64s("axes", [2])
        return reason

    monkeypatch.setattr(AttributesForOperands, "lower", mistaken)
    given = (torch.rand(2, 3, 3),)
    result = onnxsmith.export(Mean(), given, output=tmp_path / "m.onnx", opset=17, strategy="torch-export")
    why = next(one.why for one in result.report.problems if one.id == "verify/different")
    assert ". Changed with the opset: ReduceMean " in why
