"""transformers makes no mask where none is given and every place is seen: while it is traced it would make one."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class AbsentMasks(Rewrite):
    """Eagerly it looks whether a padding mask is all ones, and so looks at none while it is traced. Where there is no
    padding mask there is nothing to look at, and some models cannot take the mask that they are never given."""

    title = "no mask is made where none is given and every place is attended to"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("transformers.masking_utils")
        function = getattr(library, "_ignore_bidirectional_mask_sdpa", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _ignored.__code__
        return False


def _ignored(padding_mask: Any, kv_length: Any, local_attention_size: Any = None) -> bool:
    """With no name of this file in it: it runs in the place of another function."""
    return padding_mask is None and (local_attention_size is None or bool(kv_length < local_attention_size))
