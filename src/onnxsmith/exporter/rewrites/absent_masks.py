"""Keeps transformers from making an attention mask in a trace that it does not make in a call."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class AbsentMasks(Rewrite):
    """In a call, transformers skips the mask if there is no padding mask, or if it is all ones. In a trace it cannot
    read a mask and so always makes one, which some models do not accept. Here a trace also skips the mask if there is
    no padding mask."""

    title = "no attention mask is made if none is given and all positions are visible"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("transformers.masking_utils")
        function = getattr(library, "_ignore_bidirectional_mask_sdpa", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _ignored.__code__
        return False


def _ignored(padding_mask: Any, kv_length: Any, local_attention_size: Any = None) -> bool:
    """Must not use this module's globals: its code replaces another function's code."""
    return padding_mask is None and (local_attention_size is None or bool(kv_length < local_attention_size))
