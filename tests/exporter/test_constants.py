"""Branches on single values that the module itself holds are no branches on data."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture


class Flags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("initialised", torch.tensor(True))
        self.register_buffer("width", torch.tensor(3))
        self.temperature = nn.Parameter(torch.tensor([0.5]))

    def forward(self, x: torch.Tensor) -> Any:
        if not self.initialised:
            self.initialised.copy_(torch.tensor(True))
            return x
        x = x[..., : int(self.width)]
        return x * 2 if self.temperature > 0 else x * 3


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.tensor(3))

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return x * 2 if self.calls > 3 else x


@pytest.mark.parametrize("value", [True, False])
def test_a_branch_on_a_flag_of_the_module_goes_as_the_flag_says(value: bool) -> None:
    module = Flags()
    module.initialised.fill_(value)
    result = onnxsmith.export(module, (torch.randn(2, 5),), dynamic={"x": {0: "n"}}, strategy="torch-export")
    assert result.ok, result.report.problems
    shape = result.report.part(Capture).outputs[0].shape
    assert shape == ("n", 3 if value else 5)
    assert bool(module.initialised) is value


def test_a_value_that_forward_writes_is_not_taken_as_it_was() -> None:
    """Its own value after the write is asked for: torch knows it no more, and other ways follow."""
    result = onnxsmith.export(Counts(), (torch.randn(2, 5),), dynamic={"x": {0: "n"}})
    assert result.ok, result.report.problems


def test_a_branch_on_an_input_of_one_element_is_still_one_on_data() -> None:
    class Asks(nn.Module):
        def forward(self, x: torch.Tensor, flag: torch.Tensor) -> Any:
            if flag:
                raise ValueError("no")
            return x

    with pytest.raises(onnxsmith.OnnxsmithError):
        onnxsmith.export(Asks(), (torch.randn(2), torch.tensor(False)), strategy="torch-export")


class Normalizes(nn.Module):
    """As torchvision's `normalize`: makes a tensor of an option, checks it, and computes with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        std = torch.as_tensor([0.2, 0.3, 0.4], dtype=x.dtype)
        if (std == 0).any():
            raise ValueError("std is zero")
        return x / std.view(-1, 1, 1)


class Overwrites(nn.Module):
    """Its tensor depends on the data when it is tested."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        std = torch.as_tensor([0.2, 0.3, 0.4])
        std.mul_(x.sum(0))
        return x * 2 if (std > 0).any() else x * 3


def test_a_check_of_numbers_is_no_branch_on_data() -> None:
    result = onnxsmith.export(Normalizes(), (torch.rand(2, 3, 4, 4),), dynamic="x:0=batch,2=height")
    assert result.ok
    assert result.report.part(Capture).how.startswith("torch.export + torch.onnx")


def test_a_small_tensor_that_data_overwrites_is_no_constant() -> None:
    result = onnxsmith.export(Overwrites(), (torch.rand(2, 3),), dynamic="x:0=batch")
    assert result.ok
    assert result.report.part(Capture).tried
