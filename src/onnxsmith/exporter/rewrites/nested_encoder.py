"""Makes nn.TransformerEncoder give zeros at padded positions in a trace, as in a call without gradients."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where


class NestedEncoder(Rewrite):
    """Without gradients PyTorch skips padded positions (nested tensors) and fills their results with zeros, if the
    padding of every row is at its end. In a trace it computes padded positions like all others. Here the mask decides
    at run time which of the two results is given."""

    title = "nn.TransformerEncoder gives zeros at padded positions, as in a call"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_nests, module, _forward, stack)


def _nests(part: torch.nn.Module) -> bool:
    """Whether a padding mask leads to nested tensors (`nn.TransformerEncoder.forward`, torch 2.13)."""
    return (
        isinstance(part, torch.nn.TransformerEncoder)
        and type(part).forward is torch.nn.TransformerEncoder.forward
        and torch.backends.mha.get_fastpath_enabled()
        and bool(getattr(part, "use_nested_tensor", False))
        and not part.layers[0].training
    )


def _forward(
    self: Any, src: torch.Tensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
) -> torch.Tensor:
    if src_key_padding_mask is None or mask is not None or src.dim() != 3 or torch.is_autocast_enabled():
        return torch.nn.TransformerEncoder.forward(self, src, mask, src_key_padding_mask, is_causal)
    padded = src_key_padding_mask != 0  # PyTorch reads a float mask like this too
    kept = padded.logical_not().sum(1, keepdim=True)
    behind = torch.arange(src.shape[1], device=src.device) >= kept  # the padding, if all of it is at the row's end
    nested = (behind == padded).all() if self.mask_check else torch.ones((), dtype=torch.bool, device=src.device)
    output = src
    for layer in self.layers:
        output = layer(output, src_key_padding_mask=_seen(self, src_key_padding_mask, nested, behind))
    output = output.masked_fill((nested & behind).unsqueeze(-1), 0.0)
    return output if self.norm is None else self.norm(output)


def _seen(self: Any, mask: torch.Tensor, nested: torch.Tensor, behind: torch.Tensor) -> torch.Tensor:
    """The attention mask: with nested tensors, exactly the first `kept` positions of each row are visible."""
    if not self.mask_check:
        return behind
    if not mask.is_floating_point():
        return mask  # the computation is nested only if this mask equals `behind`
    return torch.where(nested, torch.zeros_like(mask).masked_fill(behind, -torch.inf), mask)
