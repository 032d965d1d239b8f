"""Lets `scaled_dot_product_attention(..., is_causal=length > 1)` follow the length: torch takes only a plain bool."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.rewrites.extremes import files

_FUNCTION = torch.nn.functional.scaled_dot_product_attention
_NAME = "scaled_dot_product_attention"


class CausalFlags(Rewrite):
    """Where the flag is a condition on sizes, attention gets the mask that it stands for: of all places where the
    condition is false. The function's other calls are unchanged."""

    title = "a causal flag that depends on sizes is a mask"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        homes = [torch.nn.functional, *(one for one in files(module) if vars(one).get(_NAME) is _FUNCTION)]
        for home in homes:
            stack.enter_context(replaced(home, _NAME, _attention))
        return False


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: Any = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if isinstance(is_causal, torch.SymBool) and attn_mask is None:
        flag: Any = is_causal
        before = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        attn_mask, is_causal = before | ~torch.scalar_tensor(flag, dtype=torch.bool), False
    return _FUNCTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
