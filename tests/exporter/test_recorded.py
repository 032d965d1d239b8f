"""Modules whose forward computes a derivative: forces of an energy, gradients of samples, Jacobians."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.graph.files.load import load


class Forces(nn.Module):
    """An energy and its negative gradient, as potentials of molecules return them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            positions = positions.detach().requires_grad_()
            energy = (self.net(positions * self.scale) * self.scale).sum()
            (gradient,) = torch.autograd.grad(energy, positions)
        return energy.detach(), -gradient


class PerSample(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gradient: Any = torch.func.vmap(torch.func.grad(lambda row: self.net(row).tanh().sum()))(x)
        return torch.as_tensor(gradient)


class Jacobian(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: Any = torch.func.jacrev(lambda a: (a**2).sum(-1))(x)
        return torch.as_tensor(found)


@pytest.mark.parametrize(("kind", "size"), [(Forces, 3), (PerSample, 4), (Jacobian, 4)])
def test_exported_with_a_dynamic_batch(kind: type[nn.Module], size: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    torch.manual_seed(0)
    result = onnxsmith.export(kind().eval(), (torch.randn(5, size),), output=path, dynamic=({0: "n"},))
    assert result.report.verdict == "done"
    assert "verified on" in result.report.headline
    model = load(path)
    assert model.graph.inputs[0].shape is not None
    assert str(model.graph.inputs[0].shape[0]) == "n"


@pytest.mark.usefixtures("compared_once")
def test_parameters_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    torch.manual_seed(0)
    onnxsmith.export(Forces().eval(), (torch.randn(5, 3),), output=path, simplify=False)
    assert {"scale", "net.0.bias", "net.2.bias"} <= set(load(path).graph.initializers)
