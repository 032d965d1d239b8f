"""Checks of the source of forward: what they find, and above all what they leave alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from onnxsmith.exporter import lint
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import observe


def suspicions(net: nn.Module, *args: Any, sizes: Any = None) -> list[source_linting.Suspicion]:
    model = TorchModel(net.eval(), args)
    return source_linting.read(net, observe(model).calls, sizes or {})


def found(net: nn.Module, *args: Any, sizes: Any = None) -> list[tuple[str, str]]:
    return [(s.finding.problem.id, s.finding.source) for s in suspicions(net, *args, sizes=sizes)]


class Block(nn.Module):
    def __init__(self, width: int, times: int = 2, bias: Any = None) -> None:
        super().__init__()
        self.scale = 2.0
        self.times = times
        self.debug = False
        self.bias = bias
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(times)])
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.seen = None

    def forward(self, x: torch.Tensor, mask: Any = None, return_all: bool = False) -> Any:
        b, n, c = x.shape
        scale = int(self.scale)
        if self.debug:
            print(x.mean().item())  # noqa: T201
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        if self.bias is None and n > 1 and x.dim() == 3 and x.dtype == torch.float32:
            x = x * float(scale)
        kept = []
        for index, layer in enumerate(self.layers):
            x = self.drop(layer(x)) + x
            if index % 2 == 0:
                kept.append(x)
        for i in range(self.times):
            x = x + i
        for part in x.chunk(2, dim=-1):
            kept.append(part * 2)  # noqa: PERF401
        x = x.view(b, n, 2, c // 2).transpose(1, 2).reshape(b, n, -1)
        y = torch.zeros_like(x)
        y[:, 0] = 1
        y += x
        y.mul_(2)
        y = nn.functional.dropout(y, p=0.5, training=self.training)
        self.seen = y
        limits = np.sqrt(self.times)
        assert c == y.shape[-1]
        if isinstance(y, tuple):
            y = y[0]
        if return_all:
            return y, torch.stack(kept[:1])
        return self.norm(y) * float(limits) if not torch.jit.is_tracing() else y


def test_ordinary_code_is_left_alone() -> None:
    assert found(Block(4), torch.rand(2, 3, 4)) == []
    assert found(Block(4), torch.rand(2, 3, 4), torch.rand(2, 3, 1) > 0.5) == []


def test_layers_of_torch_and_what_is_made_of_them_is_left_alone() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5))
    assert found(net, torch.rand(2, 3, 8, 8)) == []
    assert found(nn.LSTM(4, 5), torch.rand(7, 3, 4)) == []


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        low = x.min()
        if low < 0 and not y.any():
            x = x - low
        return [x, y][int(low)]


def test_a_value_is_followed_through_names() -> None:
    assert found(Choosing(), torch.rand(2), torch.rand(2)) == [
        ("forward/branch-on-data", "if low < 0 and not y.any():"),
        ("forward/python-value", "return [x, y][int(low)]"),
    ]


def test_the_condition_of_a_branch_becomes_a_tensor() -> None:
    code = suspicions(Choosing(), torch.rand(2), torch.rand(2))[0].finding.code
    assert code.strip() == "x = torch.where(torch.logical_and(low < 0, torch.logical_not(y.any())), x - low, x)"


def helper(t: torch.Tensor) -> tuple[torch.Tensor, int]:
    return t * t.max().item(), 3


class Counting(nn.Module):
    """How many different numbers there are: equal numbers are one key, equal tensors are two."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * len({int(v): 1 for v in x}) + len({int(v) for v in x}) + len({int(x[0]), int(x[1])})


def test_a_number_that_is_a_key_is_not_replaced_by_a_tensor() -> None:
    found = [
        s.finding for s in suspicions(Counting(), torch.arange(4)) if s.finding.problem.id == "forward/python-value"
    ]
    assert found
    assert not any(one.code for one in found)


class Calling(nn.Module):
    def inner(self, t: torch.Tensor) -> torch.Tensor:
        if t.sum() > 0:
            return t
        return -t

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, n = helper(x)
        for _ in range(n):
            y = self.inner(y)
        return y


def test_functions_and_methods_that_forward_calls_are_read() -> None:
    assert [id_ for id_, _ in found(Calling(), torch.rand(2))] == ["forward/python-value", "forward/branch-on-data"]


def test_every_check_of_the_folder_is_found() -> None:
    files = [file for file in Path(lint.__file__).parent.glob("*.py") if not file.stem.startswith("_")]
    parts = [part for file in files for part in ast.parse(file.read_text(encoding="utf-8")).body]
    kinds = [part for part in parts if isinstance(part, ast.ClassDef) and "Check" in map(ast.unparse, part.bases)]
    own = [re.sub("(?<!^)(?=[A-Z])", "-", kind.name).lower() for kind in kinds]
    assert list(source_linting.checks()) == sorted(own)
