"""A network with an operator of its own, deformable convolution, and what that operator is in ONNX.

Factories for `onnxsmith export`: `standard` has it as ONNX's DeformConv, `function` as a function in the file, `plugin`
as one node for a runtime that has a kernel for it.
"""

from __future__ import annotations

import torch
from torch import nn

import onnxsmith


def deformable(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    stride: int,
    padding: int,
) -> torch.Tensor:
    """Deformable convolution: each tap of the kernel reads x where `offset` says, bilinearly, times `mask`.

    x [N, C, H, W]; weight [O, C, kh, kw]; offset [N, 2·kh·kw, OH, OW], row and column for each tap; mask
    [N, kh·kw, OH, OW]; bias [O]. Gives [N, O, OH, OW]. Dai et al. 2017 (arXiv:1703.06211), with the mask of Zhu et al.
    2018 (arXiv:1811.11168).
    """
    rows, columns = weight.shape[2], weight.shape[3]
    at = offset.unflatten(1, (rows * columns, 2))
    tap_row = torch.arange(rows).repeat_interleave(columns).view(1, -1, 1, 1)
    tap_column = torch.arange(columns).repeat(rows).view(1, -1, 1, 1)
    out_row = torch.arange(offset.shape[2]).view(1, 1, -1, 1) * stride - padding
    out_column = torch.arange(offset.shape[3]).view(1, 1, 1, -1) * stride - padding
    values = bilinear(x, at[:, :, 0] + tap_row + out_row, at[:, :, 1] + tap_column + out_column)
    if mask is not None:
        values = values * mask.unsqueeze(1)
    result = torch.einsum("nckhw,ock->nohw", values, weight.flatten(2))
    return result if bias is None else result + bias.view(1, -1, 1, 1)


def bilinear(x: torch.Tensor, row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    """x [N, C, H, W] at fractional places [N, K, OH, OW], zero outside; gives [N, C, K, OH, OW]."""
    height, width = x.shape[2], x.shape[3]
    total = torch.zeros(())
    for below in (0, 1):
        for right in (0, 1):
            r, c = row.floor() + below, column.floor() + right
            weight = (1 - (row - r).abs()) * (1 - (column - c).abs())
            inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
            index = (r.clamp(0, height - 1) * width + c.clamp(0, width - 1)).long().flatten(1)
            values = x.flatten(2).gather(2, index.unsqueeze(1).expand(-1, x.shape[1], -1))
            total = total + values.unflatten(2, row.shape[1:]) * (weight * inside).unsqueeze(1)
    return total


@torch.library.custom_op("example::deformable", mutates_args=())
def operator(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    stride: int = 1,
    padding: int = 0,
) -> torch.Tensor:
    """What stands for a kernel written in C++ or CUDA, which torch.export does not look into."""
    return deformable(x, weight, offset, mask, bias, stride, padding)


def as_deform_conv(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    stride: int,
    padding: int,
) -> torch.Tensor:
    """The operator as the one that ONNX has since opset 19."""
    return onnxsmith.onnx_op(
        "DeformConv",
        *(x, weight, offset, torch.zeros(weight.shape[0]) if bias is None else bias, mask),
        shape=[x.shape[0], weight.shape[0], offset.shape[2], offset.shape[3]],
        version=19,
        strides=[stride, stride],
        pads=[padding] * 4,
    )


class Deformable(nn.Module):
    """Two ordinary convolutions say where the deformable one looks, and how much of it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Conv2d(3, 18, 3, padding=1)
        self.how_much = nn.Conv2d(3, 9, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(8, 3, 3, 3) / 5)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = self.how_much(x).sigmoid()
        found: torch.Tensor = torch.ops.example.deformable(x, self.weight, self.where(x), mask, self.bias, 1, 1)
        return found.relu()


def _network() -> tuple[nn.Module, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    return Deformable(), (torch.rand(2, 3, 16, 12),)


def standard() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The operator as ONNX's own."""
    onnxsmith.register("example::deformable", as_deform_conv)
    return _network()


def function() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The operator as a function in the file, which every runtime runs."""
    onnxsmith.register("example::deformable", deformable, deliver="function", domain="example")
    return _network()


def plugin() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The operator as one node, for a runtime that has a kernel for it."""
    onnxsmith.register("example::deformable", deformable, deliver="plugin", domain="example")
    return _network()
