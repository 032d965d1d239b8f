"""Traces packed sequences, whose number of rows is known only at run time.

A packed sequence holds the rows of all sequences without the padding, step after step. Recurrent layers and
`pad_packed_sequence` need the padded form. This is remembered where a trace makes the rows from it, so that packing,
a recurrent layer and padding again become one ONNX operator and a mask.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from onnxsmith.base.seams.torch.modules import packing_by
from onnxsmith.base.seams.torch.size_questions import is_known
from onnxsmith.base.seams.torch.tensors import check
from onnxsmith.exporter.rewrites.base import Rewrite

_LAYOUT = "_onnxsmith_layout"
"""Is the attribute of `batch_sizes` that holds its `Layout`."""
_PADDED = "_onnxsmith_padded"
"""Is the attribute of `data` that holds its `Layout` and the padded form, [steps, batch, ...]."""


class PackedSequences(Rewrite):
    """Traces `pack_padded_sequence` and `pad_packed_sequence` with the lengths as a tensor. torch.export knows neither,
    or only for the example's lengths.

    The code of `pad_packed_sequence` is replaced, so that every file that imported the function uses the replacement.
    """

    title = (
        "packed sequences are padded again by a mask, with their lengths as a tensor, so that the lengths stay dynamic"
    )

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(packing_by(_pack))
        function = getattr(sys.modules["torch.nn.utils.rnn"], "pad_packed_sequence", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _pad_packed_sequence.__code__
        return False


@dataclass(frozen=True)
class Layout:
    """Says which elements of a padded tensor, [steps, batch, ...], are rows of a packed sequence. `lengths` [batch] are
    in descending order. `longest` is the number of steps of the longest sequence, at most `steps`. `places` are the
    rows' indices in the padded tensor, its first two axes joined."""

    lengths: torch.Tensor
    steps: Any
    longest: Any
    places: torch.Tensor

    @classmethod
    def of_lengths(cls, lengths: torch.Tensor, steps: Any) -> Layout:
        longest = lengths.max().item()
        # a trace cannot derive the bounds of a number read from a tensor
        check(longest >= 1)
        check(longest <= steps)
        return cls(lengths, steps, longest, _places(_inside(lengths, steps)))

    @classmethod
    def of_batch_sizes(cls, batch_sizes: torch.Tensor) -> Layout:
        """Returns the layout of a packed sequence: the one that was remembered, or else that of the numbers."""
        known: Layout | None = getattr(batch_sizes, _LAYOUT, None)
        if known is not None:
            return known
        batch = batch_sizes[0].item()
        check(batch >= 1)
        inside = torch.arange(batch)[None, :] < batch_sizes[:, None]
        return cls(inside.sum(0), batch_sizes.shape[0], batch_sizes.shape[0], _places(inside))

    def rows(self, padded: torch.Tensor) -> torch.Tensor:
        """Returns the rows of a padded tensor, which they remember."""
        rows = padded.flatten(0, 1).index_select(0, self.places)
        setattr(rows, _PADDED, (self, padded))
        return rows

    def padded(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns the padded tensor, [steps, batch, ...], with arbitrary numbers behind the end of each sequence."""
        layout, padded = getattr(rows, _PADDED, (None, None))
        if padded is not None and layout is self:
            return padded  # type: ignore[no-any-return]  # it is the tensor that `rows` noted
        inside = _inside(self.lengths, self.steps)
        index = (inside.flatten().to(torch.int64).cumsum(0) - 1).clamp(min=0)
        return rows.index_select(0, index).reshape(*inside.shape, *rows.shape[1:])


def unpacked(packed: PackedSequence) -> tuple[torch.Tensor, Layout]:
    """Returns the padded form of a packed sequence, [steps, batch, ...], and its layout."""
    layout = Layout.of_batch_sizes(packed.batch_sizes)
    return layout.padded(packed.data), layout


def packed_like(padded: torch.Tensor, layout: Layout, packed: PackedSequence) -> PackedSequence:
    """Returns a packed sequence of other rows, in the order of `packed`."""
    return PackedSequence(layout.rows(padded), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _pack(input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: A002
    padded = input.transpose(0, 1) if batch_first else input
    layout = Layout.of_lengths(lengths, padded.shape[0])
    batch_sizes = _inside(lengths, layout.steps).sum(1)[: layout.longest]
    setattr(batch_sizes, _LAYOUT, layout)
    return layout.rows(padded), batch_sizes


def _pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> Any:
    """Pads a packed sequence. Must not use this module's globals: its code replaces another function's code."""
    from onnxsmith.exporter.rewrites.packed_sequences import pad

    return pad(sequence, batch_first, padding_value, total_length)


def pad(packed: PackedSequence, batch_first: bool, value: float, total: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what `pad_packed_sequence` returns: the padded tensor and the lengths, in their order before packing."""
    padded, layout = unpacked(packed)
    steps = layout.steps if total is None else total
    if total is not None:
        check(layout.longest <= total)
        if not is_known(total == layout.steps):
            padded = padded.index_select(0, torch.arange(total).clamp(max=layout.steps - 1))
    inside = _inside(layout.lengths, steps)
    mask = inside.reshape(*inside.shape, *[1] * (padded.dim() - 2))
    padded = torch.where(mask, padded, torch.full_like(padded, value))
    padded = padded[: layout.longest] if total is None else padded
    padded, lengths = padded.transpose(0, 1) if batch_first else padded, layout.lengths
    order = packed.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order)


def _inside(lengths: torch.Tensor, steps: Any) -> torch.Tensor:
    """Returns whether each step, [steps, batch], is one of its sequence."""
    return torch.arange(steps, device=lengths.device)[:, None] < lengths[None, :]


def _places(inside: torch.Tensor) -> torch.Tensor:
    places = inside.flatten().nonzero().squeeze(1)
    check(places.shape[0] >= 1)
    return places
