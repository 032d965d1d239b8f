"""Derivatives and vmap in forward: the reason names them, not an argument and not `.data`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import vjp

import onnxsmith
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.module import function_transforms
from onnxsmith.exporter.strategies import _failures
from onnxsmith.runtimes.torch_eager import TorchProgram


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)


class Grad(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(lambda v: (self.layer(v) ** 2).sum())(x)


class Jacrev(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.jacrev(self.layer)(x[0])


class Jacfwd(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.jacfwd(lambda v: self.layer(v) * torch.tensor(2.0))(x[0])


class Vjp(Base):
    """The function was imported by its name, and another function calls it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return pulled_back(self.layer, x)


def pulled_back(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    result, back = vjp(layer, x)
    return back(result)[0]


class Linearize(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, tangent = torch.func.linearize(lambda v: self.layer(v) * torch.tensor(2.0), x)
        return tangent(x)


class Within(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.clone().requires_grad_()
            return torch.autograd.grad((self.layer(x) ** 2).sum(), x)[0]


class Jacobian(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.functional.jacobian(lambda v: self.layer(v), x[0])


class Mapped(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(lambda v: self.layer(v) * torch.tensor(2.0))(x)


class Plain(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


NAMES = {
    Grad: "torch.func.grad",
    Jacrev: "torch.func.jacrev",
    Jacfwd: "torch.func.jacfwd",
    Vjp: "torch.func.vjp",
    Linearize: "torch.func.linearize",
    Within: "torch.autograd.grad",
    Jacobian: "torch.autograd.functional.jacobian",
}


@pytest.mark.filterwarnings("ignore")  # torch warns about its own functions in jacfwd and linearize
@pytest.mark.parametrize("kind", NAMES)
def test_the_reason_names_the_transformation(kind: type[Base]) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(kind().eval(), (torch.randn(3, 4),), strategy="torch-export")
    assert caught.value.problem.id == "forward/function-transform"
    assert NAMES[kind] in caught.value.problem.what


def test_a_transformation_that_can_be_traced_is_exported() -> None:
    assert onnxsmith.export(Mapped().eval(), (torch.randn(3, 4),), strategy="torch-export").ok


def test_a_module_without_one_has_no_name() -> None:
    assert function_transforms.used_by(Plain()) == ""
    assert function_transforms.used_by(nn.Sequential(nn.Linear(4, 4), Mapped())) == "torch.func.vmap"


def _program() -> TorchProgram:
    return programs.build(TorchModel(Plain().eval(), (torch.randn(3, 4),)), {}).program


def test_no_object_is_blamed_where_no_argument_is_one() -> None:
    trace: Any = SimpleNamespace(watch=SimpleNamespace(frozen=[]))
    found = _failures.of_trace(RuntimeError("KeyError: lifted_tensor_0"), _program(), trace).problem
    assert found.id == "export/capture-failed"
    assert "lifted_tensor_0" in found.why
