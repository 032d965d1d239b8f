"""Traces attention and the layers of nn.Transformer: their memory layout and their masks."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch.modules import masks_by
from onnxsmith.exporter.rewrites.base import Rewrite, instead_where
from onnxsmith.exporter.rewrites.extremes import files


class AttentionLayout(Rewrite):
    """Traces attention by PyTorch's formula, because a translated graph does not have the memory layout of a kernel.

    The CPU kernel of `scaled_dot_product_attention` returns another memory layout, in which a following `contiguous()`
    does nothing. It also compares the batch size with 1, which would fix the axis.
    """

    title = "attention is traced as its plain formula, with the formula's memory layout"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        return False


_ATTENTION = torch.nn.functional.scaled_dot_product_attention
_ATTENTION_NAME = "scaled_dot_product_attention"


class CausalFlags(Rewrite):
    """Traces `scaled_dot_product_attention(..., is_causal=length > 1)` with a dynamic length. torch takes only a plain
    bool.

    If the flag is a condition on sizes, attention gets an equivalent mask: the causal mask, or all positions where the
    condition is false. Other calls of the function are unchanged.
    """

    title = "a causal flag that depends on sizes becomes a mask"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        homes = [torch.nn.functional, *(one for one in files(module) if vars(one).get(_ATTENTION_NAME) is _ATTENTION)]
        for home in homes:
            stack.enter_context(replaced(home, _ATTENTION_NAME, _attention))
        return False


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: Any = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if isinstance(is_causal, torch.SymBool) and attn_mask is None:
        flag: Any = is_causal
        before = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        attn_mask, is_causal = before | ~torch.scalar_tensor(flag, dtype=torch.bool), False
    return _ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


_LAYERS = (torch.nn.TransformerEncoder, torch.nn.TransformerDecoder)


class TransformerMasks(Rewrite):
    """Keeps nn.TransformerEncoder and nn.TransformerDecoder from reading the values of a mask to see whether it is
    causal.

    A causal mask only chooses the kernel; it does not change the result.
    """

    title = "nn.Transformer applies its mask without reading the mask's values"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if not any(isinstance(part, _LAYERS) for part in module.modules()):
            return False
        stack.enter_context(masks_by(_is_declared_causal))
        return False


def _is_declared_causal(mask: Any, is_causal: bool | None = None, size: Any = None) -> bool:
    return is_causal is True


class NestedEncoder(Rewrite):
    """Makes nn.TransformerEncoder give zeros at padded positions in a trace, as in a call without gradients.

    Without gradients PyTorch skips padded positions (nested tensors) and fills their results with zeros, if the padding
    of every row is at its end. In a trace it computes padded positions like all others. Here the mask decides at run
    time which of the two results is given.
    """

    title = "nn.TransformerEncoder returns zeros at padded positions, as in a call"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_nests, module, _encoded, stack)


def _nests(part: torch.nn.Module) -> bool:
    """Whether a padding mask leads to nested tensors (`nn.TransformerEncoder.forward`, torch 2.13)."""
    return (
        isinstance(part, torch.nn.TransformerEncoder)
        and type(part).forward is torch.nn.TransformerEncoder.forward
        and torch.backends.mha.get_fastpath_enabled()
        and bool(getattr(part, "use_nested_tensor", False))
        and not part.layers[0].training
    )


def _encoded(
    self: Any, src: torch.Tensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
) -> torch.Tensor:
    if src_key_padding_mask is None or mask is not None or src.dim() != 3 or torch.is_autocast_enabled():
        return torch.nn.TransformerEncoder.forward(self, src, mask, src_key_padding_mask, is_causal)
    padded = src_key_padding_mask != 0  # PyTorch reads a float mask in this way too
    kept = padded.logical_not().sum(1, keepdim=True)
    behind = (
        torch.arange(src.shape[1], device=src.device) >= kept
    )  # equals the padding if all of it is at the row's end
    nested = (behind == padded).all() if self.mask_check else torch.ones((), dtype=torch.bool, device=src.device)
    output = src
    for layer in self.layers:
        output = layer(output, src_key_padding_mask=_seen(self, src_key_padding_mask, nested, behind))
    output = output.masked_fill((nested & behind).unsqueeze(-1), 0.0)
    return output if self.norm is None else self.norm(output)


def _seen(self: Any, mask: torch.Tensor, nested: torch.Tensor, behind: torch.Tensor) -> torch.Tensor:
    """Returns the attention mask. With nested tensors, exactly the first `kept` positions of each row are visible."""
    if not self.mask_check:
        return behind
    if not mask.is_floating_point():
        return mask  # the computation is nested only if this mask equals `behind`
    return torch.where(nested, torch.zeros_like(mask).masked_fill(behind, -torch.inf), mask)
