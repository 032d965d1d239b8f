"""Reshapes with `allowzero` at opsets that do not have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from onnx import parser
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.graph.zero_reshapes import without_allowzero


class View(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), -1) * 2


class Heads(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        x = x.view(b, t, 4, c // 4).transpose(1, 2).reshape(b * 4, t, c // 4)
        return x.expand(b * 4, t, c // 4).reshape(b, 4 * t, c // 4) + 1


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


CASES: dict[str, tuple[nn.Module, tuple[int, ...], dict[int, str]]] = {
    "view": (View(), (2, 3, 4, 4), {0: "b"}),
    "heads": (Heads(), (2, 6, 8), {0: "b", 1: "t"}),
    "flatten": (nn.Flatten(1), (2, 6, 8, 8), {0: "b", 2: "h", 3: "w"}),
    "attention": (Attention(), (2, 6, 16), {0: "b", 1: "t"}),
}


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("name", CASES)
def test_the_captured_program_is_written_at_an_old_opset(name: str, opset: int, tmp_path: Path) -> None:
    module, shape, axes = CASES[name]
    export: Any = onnxsmith.export
    key = "input" if name == "flatten" else "x"
    result = export(module.eval(), (torch.rand(shape),), output=tmp_path / "m.onnx", dynamic={key: axes}, opset=opset)
    assert result.report.part(Capture).how.startswith("torch.export")


HEAD = '<ir_version: 8, opset_import: ["": 17]> '


def reshaped(text: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the attribute is gone, and the notes."""
    model = ir.from_proto(parser.parse_model(HEAD + text))
    notes = without_allowzero(model)
    return "allowzero" not in model.graph[-1].attributes, notes


def test_a_constant_zero_keeps_the_attribute() -> None:
    text = "g (float[n,4] x) => (float[0,2] y) <int64[2] t = {0, 2}> { y = Reshape<allowzero = 1>(x, t) }"
    assert reshaped(text) == (False, ())


def test_a_constant_without_a_zero_does_not_need_it() -> None:
    text = "g (float[n,4] x) => (float[m,2] y) <int64[2] t = {-1, 2}> { y = Reshape<allowzero = 1>(x, t) }"
    assert reshaped(text) == (True, ())


COMPUTED = """g (float[n,m,4] x) => (float[a,b] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] four = {4}> {
    s = Shape(x) n = Gather(s, zero) m = Gather(s, one) k = Mul(m, four) t = Concat<axis = 0>(FIRST)
    y = Reshape<allowzero = 1>(x, t)
}"""


def test_a_size_that_is_repeated_at_its_place_is_exact_at_0() -> None:
    gone, notes = reshaped(COMPUTED.replace("FIRST", "n, m, four").replace("float[a,b]", "float[a,b,c]"))
    assert gone
    assert notes == ()


@pytest.mark.parametrize("first", ["n, k", "k, n"])
def test_a_size_that_may_be_0_elsewhere_is_told(first: str) -> None:
    gone, notes = reshaped(COMPUTED.replace("FIRST", first))
    assert gone
    assert notes == ("1 Reshape cannot produce an axis of size 0 before opset 14, so such inputs are refused",)
