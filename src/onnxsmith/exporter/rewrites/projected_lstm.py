"""Unrolls an LSTM with a projection: ONNX's operator has no projection, and torch.onnx's translation is wrong."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where


class ProjectedLstm(Rewrite):
    """Unrolls nn.LSTM with `proj_size` for the example's number of steps, so that this axis is fixed.

    A packed sequence arrives in the form of `packed_sequences.py`: padded, with its lengths.
    """

    title = "an LSTM with a projection is unrolled for the example's number of steps"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_fits, module, _forward, stack)


def _fits(part: torch.nn.Module) -> bool:
    return type(part) is torch.nn.LSTM and part.proj_size > 0


def _forward(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002
    packed, lengths = input, None
    if isinstance(packed, PackedSequence):
        input, lengths = packed.data, packed.batch_sizes  # noqa: A001
    batched = input.dim() == 3
    first = self.batch_first and lengths is None and batched
    x = input if batched else input.unsqueeze(1)
    x = x.transpose(0, 1) if first else x
    begin = _states(self, x, hx, packed)
    ends: list[tuple[torch.Tensor, torch.Tensor]] = []
    for layer in range(self.num_layers):
        outs = []
        for side in ["", "_reverse"][: 2 if self.bidirectional else 1]:
            states = [state[len(ends)] for state in begin]
            out, hidden, cell = _direction(self, f"l{layer}{side}", x, states, lengths)
            outs.append(out)
            ends.append((hidden, cell))
        x = torch.cat(outs, -1)
    last = [torch.stack(parts) for parts in zip(*ends, strict=True)]
    if lengths is not None:
        if packed.unsorted_indices is not None:
            last = [state.index_select(1, packed.unsorted_indices) for state in last]
        return PackedSequence(x, lengths, packed.sorted_indices, packed.unsorted_indices), tuple(last)
    x = x.transpose(0, 1) if first else x
    return (x, tuple(last)) if batched else (x.squeeze(1), tuple(state.squeeze(1) for state in last))


def _states(self: Any, x: torch.Tensor, hx: Any, packed: Any) -> list[torch.Tensor]:
    """The initial hidden and cell states of all layers and directions, [layers * directions, batch, features]."""
    if hx is None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return [x.new_zeros(count, x.shape[1], size) for size in (self.proj_size, self.hidden_size)]
    given = [state if state.dim() == 3 else state.unsqueeze(1) for state in hx]
    if isinstance(packed, PackedSequence) and packed.sorted_indices is not None:
        given = [state.index_select(1, packed.sorted_indices) for state in given]
    return given


def _direction(self: Any, name: str, x: torch.Tensor, states: list[torch.Tensor], lengths: torch.Tensor | None) -> Any:
    """Computes one direction of one layer. `x` is [steps, batch, features]; returns the outputs and the final states.
    With `lengths`, [batch], steps after a sequence's end do not change its states, in both directions."""
    weights = [getattr(self, f"weight_{what}_{name}") for what in ("ih", "hh", "hr")]
    biases = [getattr(self, f"bias_{what}_{name}") if self.bias else None for what in ("ih", "hh")]
    hidden, cell = states
    steps = list(enumerate(x.unbind(0)))
    outs = []
    for index, step in reversed(steps) if name.endswith("_reverse") else steps:
        gates = torch.nn.functional.linear(step, weights[0], biases[0])
        gates = gates + torch.nn.functional.linear(hidden, weights[1], biases[1])
        enter, forget, new, out = gates.chunk(4, -1)
        next_cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        next_hidden = torch.nn.functional.linear(out.sigmoid() * next_cell.tanh(), weights[2])
        if lengths is not None:
            inside = (lengths > index)[:, None]
            next_cell, next_hidden = torch.where(inside, next_cell, cell), torch.where(inside, next_hidden, hidden)
        hidden, cell = next_hidden, next_cell
        outs.append(hidden)
    return torch.stack(outs[::-1] if name.endswith("_reverse") else outs), hidden, cell
