"""`F.interpolate` as one Resize of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.exporter.translations.upsampling import agree
from tests.exports import assert_follows

pytestmark = pytest.mark.usefixtures("compared_once")
"""The graphs are held to the module at other sizes by the tests themselves."""


class Interpolate(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, **self.options)


@pytest.mark.parametrize("dynamic", ["", "x:2=h"])
@pytest.mark.parametrize(
    ("options", "rank"),
    [
        ({"mode": "nearest-exact", "scale_factor": 2.0}, 4),
        ({"mode": "linear", "size": 7}, 3),
        ({"mode": "linear", "scale_factor": 1.3, "align_corners": True}, 3),
        ({"mode": "bilinear", "antialias": True, "scale_factor": (0.5, 1.3)}, 4),
        ({"mode": "bicubic", "antialias": True, "size": (5, 17)}, 4),
    ],
)
def test_one_node(options: dict[str, Any], rank: int, dynamic: str) -> None:
    torch.manual_seed(0)
    module, (height, *others) = Interpolate(**options), (12, 10, 4)[: rank - 2]
    result = onnxsmith.export(module, (torch.randn(1, 2, height, *others),), dynamic=dynamic)
    assert result.ok, result.report
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Resize"]
    for size in (2, 3, 7, 16, 25) if dynamic else ():
        assert_follows(result.model, module, (torch.randn(1, 2, size, *others),), atol=1e-5)  # of float32 coordinates


@pytest.mark.parametrize("size", [(24, 5), (24, 5, 8)])
def test_one_node_between_known_sizes(size: tuple[int, ...]) -> None:
    result = onnxsmith.export(
        Interpolate(mode="nearest-exact", size=size), (torch.randn(1, 2, *(12, 10, 4)[: len(size)]),)
    )
    assert result.ok, result.report
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Resize"]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_pixels_from_any_size_to_a_fixed_one(mode: str, tmp_path: Path) -> None:
    module, path = Interpolate(mode=mode, size=24), tmp_path / "m.onnx"
    result = onnxsmith.export(module, (torch.randn(1, 2, 12),), output=path, dynamic="x:2=n")
    assert result.ok, result.report
    sizes = 1, 5, 20, 21, 80, 112  # from 20 on, a Resize takes another pixel in one of the modes
    assert_follows(path, module, *((torch.randn(1, 2, size),) for size in sizes), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "opset"),
    [
        ({"mode": "bilinear", "antialias": True, "align_corners": True, "size": (5, 17)}, None),
        ({"mode": "bicubic", "antialias": True, "scale_factor": 0.7}, 13),
        ({"mode": "nearest-exact", "scale_factor": 0.3}, None),
    ],
)
def test_what_a_resize_cannot_say(options: dict[str, Any], opset: int | None) -> None:
    torch.manual_seed(0)
    module, sizes = Interpolate(**options), ((12, 10), (10, 12), (5, 7), (13, 24))
    examples = [(torch.randn(1, 2, *size),) for size in sizes]
    result = onnxsmith.export(module, examples[0], dynamic="x:2=h,3=w", opset=opset)
    assert result.ok, result.report
    assert result.model is not None
    assert "Resize" not in {node.op_type for node in result.model.graph}
    assert_follows(result.model, module, *examples)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_an_antialiased_axis_that_keeps_its_size_is_copied(mode: str) -> None:
    """PyTorch leaves such an axis out, whatever its scale. float64 is computed by matrix products."""
    torch.manual_seed(0)
    module = Interpolate(mode=mode, antialias=True, scale_factor=(1.1, 1.2))
    x = torch.randn(1, 2, 9, 12, dtype=torch.float64)
    assert torch.equal(module(x[..., :4]), x[..., :4])
    fixed = onnxsmith.export(module, (x[..., :4],), strategy="torch-export")
    assert fixed.ok, fixed.report
    result = onnxsmith.export(module, (x,), dynamic="x:2=h,3=w", strategy="torch-export")
    assert result.ok, result.report
    assert result.model is not None
    sizes = (9, 4), (10, 4), (9, 5), (10, 5), (13, 24)
    assert_follows(result.model, module, *((torch.randn(1, 2, *size, dtype=x.dtype),) for size in sizes))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_the_kernel_of_pytorch_for_one_column_is_wrong(mode: str) -> None:
    """One column gives other numbers than two equal columns, unless the layout is `channels_last`. If this test fails,
    PyTorch has a right kernel, and `_antialiasing.py` needs no `_channels_last`."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 9, 1, dtype=torch.float64)
    module = Interpolate(mode=mode, antialias=True, size=(4, 1))
    right = Interpolate(mode=mode, antialias=True, size=(4, 2))(x.repeat(1, 1, 1, 2))[..., :1]
    torch.testing.assert_close(module(x.contiguous(memory_format=torch.channels_last)), right)
    assert (module(x) - right).abs().max() > 0.1


def test_pixels_on_a_border() -> None:
    assert agree(12, 7, None, 0.5)
    assert agree(object(), object(), 2.0, 0.5)
    assert not agree(object(), object(), 0.3, 0.5)  # 1.5 / 0.3 is 5 and a rounding error


class RepeatsBoth(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(2, 2).repeat_interleave(3, 3)


def test_repeated_rows_and_columns_of_open_sizes() -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(RepeatsBoth(), (torch.randn(1, 2, 4, 6),), dynamic="x:2=h,3=w")
    assert result.ok, result.report
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Resize"]
    assert_follows(result.model, RepeatsBoth(), *((torch.randn(1, 2, *size),) for size in ((1, 1), (2, 3), (7, 5))))
