"""The names of an output's axes: the inputs' where they follow from them, else the user's."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from onnx import parser
from torch import nn

import onnxsmith
from onnxsmith.exporter.graph.output_axes import name
from onnxsmith.graph.files.load import load

FOUND = """<ir_version: 8, opset_import: ["": 17]> g (float[n,6] x) =>
    (int64[a_dim,b_dim] places, float[c_dim,d_dim] view)
<int64[2] target = {-1, 3}> { places = NonZero(x) view = Reshape(x, target) }"""


def dims(model: ir.Model) -> list[list[str | int | None]]:
    shapes = [value.shape for value in model.graph.outputs]
    return [[one if isinstance(one, int) else one.value for one in shape or ()] for shape in shapes]


def found() -> ir.Model:
    return ir.from_proto(parser.parse_model(FOUND))


def test_what_follows_from_the_inputs_is_written_so() -> None:
    model = found()
    name(model, {})
    assert dims(model) == [[2, "b_dim"], ["2*n", 3]]


def test_what_does_not_follow_has_the_users_name() -> None:
    model = found()
    name(model, {"places": {1: "found"}, "view": {0: "rows"}})
    assert dims(model) == [[2, "found"], ["2*n", 3]]


def test_a_name_of_an_input_is_not_given_to_another_size() -> None:
    model = found()
    name(model, {"places": {1: "n"}})
    assert dims(model)[0] == [2, "b_dim"]


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.shuffle = nn.Conv2d(1, 4, 3, 1, 1), nn.PixelShuffle(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shuffle(self.conv(x))


@pytest.mark.parametrize("strategy", ["torchscript", "torch-export"])
def test_both_exporters_write_the_same_axes(strategy: str, tmp_path: Path) -> None:
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    onnxsmith.export(Doubled(), (torch.rand(1, 1, 6, 8),), output=tmp_path / "m.onnx", dynamic=axes, strategy=strategy)
    assert dims(load(tmp_path / "m.onnx")) == [["batch", 1, "2*height", "2*width"]]
