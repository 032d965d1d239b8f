"""Traces functions of transformers that read values or turn sizes into numbers."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.transformers import sliding_layer
from onnxsmith.exporter.rewrites.base import Rewrite


class AbsentMasks(Rewrite):
    """Keeps transformers from making an attention mask in a trace that it does not make in a call.

    In a call, transformers skips the mask if there is no padding mask, or if it is all ones. In a trace it cannot read
    a mask and so always makes one, which some models do not accept. Here a trace also skips the mask if there is no
    padding mask.
    """

    title = "if no attention mask is given and all positions are visible, the graph makes none"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("transformers.masking_utils")
        function = getattr(library, "_ignore_bidirectional_mask_sdpa", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _ignored.__code__
        return False


def _ignored(padding_mask: Any, kv_length: Any, local_attention_size: Any = None) -> bool:
    """Whether no mask is needed. Must not use this module's globals: its code replaces another function's code."""
    return padding_mask is None and (local_attention_size is None or bool(kv_length < local_attention_size))


class TransformersSizes(Rewrite):
    """Makes transformers' `torch_int` and `torch_float` keep a symbolic size symbolic.

    The two functions support `torch.jit.trace` only, in which sizes are tensors. Their code is replaced, so that every
    file that imported them uses it.
    """

    title = "transformers' torch_int and torch_float keep sizes symbolic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("transformers.utils.generic")
        for name, own in (("torch_int", _int), ("torch_float", _float)):
            function = getattr(library, name, None)
            if isinstance(function, FunctionType):
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = own.__code__
        return False


def _int(x: Any) -> Any:
    """Returns x as an integer. Must not use this module's globals: its code replaces another function's code."""
    import torch

    return torch.sym_int(x) if isinstance(x, torch.SymInt | torch.SymFloat) else int(x)  # type: ignore[no-untyped-call]


def _float(x: Any) -> Any:
    import torch

    return torch.sym_float(x) if isinstance(x, torch.SymInt | torch.SymFloat) else float(x)  # type: ignore[no-untyped-call]


class SlidingCaches(Rewrite):
    """Traces transformers' sliding cache, which keeps the last tokens only, without a branch on whether its window is
    full.

    The window is cut from the front at a computed position. Its mask sizes follow from its tensors: the keys are as
    many as the mask is long, and the offset is the number of tokens that were dropped.
    """

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


_PADDING_FUNCTION = "apply_tf_padding"


class SamePadding(Rewrite):
    """Traces transformers' function for TensorFlow's "SAME" padding with dynamic sizes.

    The function reads height and width as numbers and branches on whether the stride divides them. For every size n,
    with kernel k and stride s, the padding is max(k - s + (-n mod s), 0), which needs no branch.
    """

    title = "SAME padding is computed from the size, so that height and width stay dynamic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        homes = {type(part).__module__ for part in module.modules()}
        found = [
            home
            for home in homes
            if home.startswith("transformers.") and hasattr(sys.modules.get(home), _PADDING_FUNCTION)
        ]
        for home in found:
            stack.enter_context(replaced(sys.modules[home], _PADDING_FUNCTION, _padded))
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
