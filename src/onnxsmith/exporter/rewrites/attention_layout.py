"""Attention with the layout of its plain formula: a kernel's own layout is gone once the operator is translated."""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from onnxsmith.exporter.rewrites.base import Rewrite


class AttentionLayout(Rewrite):
    """`scaled_dot_product_attention` as PyTorch's plain formula lays it out. The kernel for CPUs gives another layout,
    which makes a `contiguous()` behind it look needless, and it asks whether a batch is 1."""

    title = "attention is laid out as its plain formula has it"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        return False
