"""Keeps nn.Transformer from reading the values of a mask to find out whether it is causal."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.seams.torch.modules import masks_by
from onnxsmith.exporter.rewrites.base import Rewrite

_LAYERS = (torch.nn.TransformerEncoder, torch.nn.TransformerDecoder)


class TransformerMasks(Rewrite):
    """nn.TransformerEncoder and nn.TransformerDecoder apply the mask without reading its values. Whether a mask is
    causal chooses the kernel, not the result."""

    title = "nn.Transformer applies its mask without reading the mask's values"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if not any(isinstance(part, _LAYERS) for part in module.modules()):
            return False
        stack.enter_context(masks_by(_is_declared_causal))
        return False


def _is_declared_causal(mask: Any, is_causal: bool | None = None, size: Any = None) -> bool:
    return is_causal is True
