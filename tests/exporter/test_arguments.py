"""Arguments of a wrong kind, and bfloat16 that an operator does not take: a problem with a fix that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith

X = torch.randn(2, 3)


@pytest.mark.parametrize(
    ("args", "kwargs", "what", "fix"),
    [
        (("z.onnx",), {}, "the second argument", 'output="z.onnx"'),
        ((Path("z.onnx"),), {}, "the second argument", 'output="z.onnx"'),
        ((X, "z.onnx"), {}, "the third argument", 'output="z.onnx"'),
        ((X.numpy(),), {}, "the model raised an error", "torch.from_numpy"),
        (((np.zeros((2, 3)),),), {}, "the model raised an error", "torch.from_numpy"),
        ((X,), {"opset": "17"}, "the opset has to be a number", "opset=17"),
        ((X,), {"output": 3}, "output has to be a path", "model.onnx"),
    ],
)
def test_arguments_of_a_wrong_kind(args: tuple[Any, ...], kwargs: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(nn.Linear(3, 4), *args, **kwargs)
    assert what in caught.value.problem.what
    assert fix in caught.value.problem.fix


class Sine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def test_bfloat16_gets_the_opset_that_takes_it() -> None:
    result = onnxsmith.export(Sine(), (X.bfloat16(),), verify=False)
    assert result.model is not None
    assert result.model.opset_imports[""] == 22


def test_bfloat16_in_an_older_opset_names_the_line_and_the_opset() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Sine(), (X.bfloat16(),), opset=20, strategy="torch-export")
    said = caught.value.problem
    assert said.id == "export/dtype"
    assert "test_arguments.py:" in said.where
    assert "--opset 22" in said.fix


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.fft.rfft(x))


def test_an_operator_newer_than_the_opset_names_one_that_works() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Spectrum(), (X,), opset=16, strategy="torch-export")
    assert caught.value.problem.fix.endswith("--opset 17")
    assert onnxsmith.export(Spectrum(), (X,), opset=17, strategy="torch-export").ok
