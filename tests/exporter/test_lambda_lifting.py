"""Functions inside a method become methods that TorchScript compiles."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.exporter.strategies._lambda_lifting import lift
from onnxsmith.exporter.tracing.torch_logging import quiet


class Captures(nn.Module):
    """An inner function and a lambda that read the module, a number, and each other; a loop that counts down."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.limit = 5.0

    def forward(self, x, steps=2):  # type: ignore[no-untyped-def]
        n = x.shape[0]
        scale = 0.5

        def step(t, i):  # type: ignore[no-untyped-def]
            if t.sum() < self.limit:
                return self.linear(t) * scale + i
            return t - n

        again = lambda t: step(t, 1)  # noqa: E731
        for i in range(steps, -1, -1):
            x = again(step(x, i))
        return x


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_large = lambda t: t.abs().max() > 1  # noqa: E731
        while is_large(x):
            x = x / 2
        return x


class Passes(nn.Module):
    """Passes an inner function on, which no method can replace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        double = lambda t: t * 2  # noqa: E731
        return self.apply_twice(double, x)

    def apply_twice(self, function, x):  # type: ignore[no-untyped-def]
        return function(function(x))


def lifted(module: nn.Module, *args: torch.Tensor) -> nn.Module:
    """The module with lifted functions, of a class of its own: `lift` changes classes."""
    made = copy.deepcopy(module)
    made.__class__ = type(type(module).__name__, (type(module),), {})
    lift(made, lambda: made(*args))
    return made


@pytest.mark.parametrize("module", [Captures(), Halves()])
def test_a_lifted_module_compiles_and_computes_the_same(module: nn.Module) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    with quiet():  # torch deprecates what the strategy uses
        compiled = torch.jit.script(lifted(module, x))
    for values in (x, 20 * x, -x):
        torch.testing.assert_close(compiled(values), module(values))


def test_a_function_that_is_passed_on_stays() -> None:
    module = Passes()
    x = torch.randn(3)
    torch.testing.assert_close(lifted(module, x)(x), 4 * x)
    assert not hasattr(lifted(module, x), "double_lifted")


def test_an_export() -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(Halves(), (torch.randn(4) * 9,))
    assert result.ok, result.report
    assert result.model is not None
    assert "Loop" in {node.op_type for node in result.model.graph}
