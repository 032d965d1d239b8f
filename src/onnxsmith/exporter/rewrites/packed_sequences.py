"""Keeps packed sequences padded in a trace: the number of rows of each step is known only at run time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.seams.torch.modules import packing_by, padding_by
from onnxsmith.base.seams.torch.tensors import check
from onnxsmith.exporter.rewrites.base import Rewrite


class PackedSequences(Rewrite):
    """`pack_padded_sequence` returns the padded tensor, steps first, with the lengths in the field `batch_sizes`.
    Recurrent layers (`recurrent.py`) and `pad_packed_sequence` read this form."""

    title = "packed sequences are kept padded, with their lengths as a tensor, so that the lengths stay dynamic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if not any(isinstance(part, torch.nn.RNNBase) for part in module.modules()):
            return False
        stack.enter_context(packing_by(_pack))
        stack.enter_context(padding_by(_pad))
        return False


def _pack(input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: A002
    return input.transpose(0, 1) if batch_first else input, lengths


def _pad(data: torch.Tensor, lengths: torch.Tensor, batch_first: bool, value: Any, total: Any) -> Any:
    inside = torch.arange(data.shape[0], device=data.device)[:, None] < lengths[None, :]
    padded = torch.where(inside[..., None], data, torch.full_like(data, value))
    longest = lengths.max().item()
    check(longest >= 1)
    check(longest <= data.shape[0])
    padded = padded[:longest]
    return padded.transpose(0, 1) if batch_first else padded, lengths
