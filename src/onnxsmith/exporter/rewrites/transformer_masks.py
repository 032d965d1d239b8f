"""Masks of nn.Transformer are masks: PyTorch looks into one to see whether it is the causal one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.seams.torch.modules import masks_by

_LAYERS = (torch.nn.TransformerEncoder, torch.nn.TransformerDecoder)


class TransformerMasks(Rewrite):
    """nn.TransformerEncoder and nn.TransformerDecoder apply the mask that they are given, whatever is in it. That
    a mask is
    causal would choose another kernel, not another result."""

    title = "nn.Transformer applies its mask without a look at the values in it"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if not any(isinstance(part, _LAYERS) for part in module.modules()):
            return False
        stack.enter_context(masks_by(_said))
        return False


def _said(mask: Any, is_causal: bool | None = None, size: Any = None) -> bool:
    return is_causal is True
