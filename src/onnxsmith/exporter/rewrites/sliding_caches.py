"""Traces windows of keys and values without a branch on whether the window is full."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.transformers import sliding_layer
from onnxsmith.exporter.rewrites.base import Rewrite


class SlidingCaches(Rewrite):
    """The layer of transformers' cache that keeps the last tokens only has a branch for a full window and one for the
    time before. Its sizes follow from its tensors without a branch: the keys are as many as the mask is long, and the
    tokens that fell out are the offset. The window is cut from the front, at a position that is computed."""

    title = "the window of a cache is cut at a computed position, full or not"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        layer = sliding_layer()
        if layer is None:
            return False
        own = layer.update

        def update(self: Any, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not self.is_initialized or self.record_past:
                return own(self, key_states, value_states, *args, **kwargs)
            self.cumulative_length += key_states.shape[-2]
            keys, values = torch.cat([self.keys, key_states], -2), torch.cat([self.values, value_states], -2)
            first: Any = torch.sym_max(keys.shape[-2] - (self.sliding_window - 1), 0)  # type: ignore[no-untyped-call]
            self.keys, self.values = keys[:, :, first:], values[:, :, first:]
            return keys, values

        stack.enter_context(replaced(layer, "update", update))
        stack.enter_context(replaced(layer, "get_mask_sizes", _mask_sizes))
        return False


def _mask_sizes(self: Any, query_length: int) -> tuple[int, int]:
    kept = self.keys.shape[-2] if self.is_initialized and self.keys.dim() > 1 else 0
    return kept + query_length, self.cumulative_length - kept
