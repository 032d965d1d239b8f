"""Traces attention with the memory layout of its formula; a translated graph does not have a kernel's layout."""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from onnxsmith.exporter.rewrites.base import Rewrite


class AttentionLayout(Rewrite):
    """Uses PyTorch's formula for `scaled_dot_product_attention`. The CPU kernel returns another memory layout, in which
    a following `contiguous()` does nothing, and it compares the batch size with 1, which would fix the axis."""

    title = "attention is traced by its formula, with the formula's memory layout"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        return False
