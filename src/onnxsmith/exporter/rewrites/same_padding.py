"""Traces transformers' function for TensorFlow's "SAME" padding with dynamic sizes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.base.seams.base import replaced
from onnxsmith.exporter.rewrites.base import Rewrite

_NAME = "apply_tf_padding"


class SamePadding(Rewrite):
    """The function reads height and width as numbers and branches on whether the stride divides them. For every size n,
    with kernel k and stride s, the padding is max(k - s + (-n mod s), 0), which needs no branch."""

    title = "SAME padding is computed from the size, so that height and width stay dynamic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        homes = {type(part).__module__ for part in module.modules()}
        found = [home for home in homes if home.startswith("transformers.") and hasattr(sys.modules.get(home), _NAME)]
        for home in found:
            stack.enter_context(replaced(sys.modules[home], _NAME, _padded))
        return bool(found)


def _padded(features: torch.Tensor, conv_layer: Any) -> torch.Tensor:
    padding: list[int] = []
    for axis in (1, 0):
        stride, kernel, dilation = (
            given[axis] for given in (conv_layer.stride, conv_layer.kernel_size, conv_layer.dilation)
        )
        added = kernel - stride + (-features.shape[axis - 2]) % stride
        if kernel < stride:
            added = torch.sym_max(added, 0)  # type: ignore[no-untyped-call]
        padding += [added // 2 * dilation, (added - added // 2) * dilation]
    return functional.pad(features, padding, "constant", 0.0)
