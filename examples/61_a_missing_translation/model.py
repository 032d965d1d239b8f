"""An operator of one's own, `shop::asinh`, and three registrations: right, wrong arguments, wrong numbers."""

import torch
from torch import nn

import onnxsmith


@torch.library.custom_op("shop::asinh", mutates_args=())
def asinh(x: torch.Tensor) -> torch.Tensor:
    return torch.asinh(x)


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.shop.asinh(x) * 2


def _net() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Net(), (torch.rand(3, 4),)


def right() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    onnxsmith.register("shop::asinh", lambda x: onnxsmith.onnx_op("Asinh", x, version=9))
    return _net()


def wrong_arguments() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    onnxsmith.register("shop::asinh", lambda x, scale: onnxsmith.onnx_op("Asinh", x, version=9))
    return _net()


def wrong_numbers() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    onnxsmith.register("shop::asinh", lambda x: torch.sinh(x))
    return _net()
