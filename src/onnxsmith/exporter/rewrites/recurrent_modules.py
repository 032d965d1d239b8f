"""Traces recurrent layers: LSTM, GRU and RNN modules."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where
from onnxsmith.exporter.rewrites.packed_sequences import packed_like, unpacked

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Lists the indices of PyTorch's gates in ONNX's order: input, output, forget, cell (LSTM); update, reset, hidden
(GRU)."""


class Recurrent(Rewrite):
    """Traces each layer of nn.LSTM, nn.GRU and nn.RNN as one ONNX node. torch.export would unroll it at the example's
    length.

    Layers with a projection (`proj_size`) are left to `ProjectedLstm`, because ONNX's operators have none. A packed
    sequence is read in its padded form, with its lengths.
    """

    title = "LSTM, GRU and RNN layers become ONNX operators, so that the sequence length stays dynamic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        # TorchDynamo, which traces the bodies of loops, does not trace functions of torch.onnx.
        allow: Any = torch.compiler.allow_in_graph
        allow(torch.onnx.ops.symbolic_multi_out)
        return instead_where(_has_operator, module, _as_operator, stack)


def _has_operator(part: torch.nn.Module) -> bool:
    kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
    return type(part) in kinds and not getattr(part, "proj_size", 0)


def _as_operator(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002
    packed, layout, lengths = input, None, None
    if isinstance(packed, PackedSequence):
        input, layout = unpacked(packed)  # noqa: A001
        lengths = layout.lengths
    batched = input.dim() == 3
    first = self.batch_first and lengths is None and batched
    x = input if batched else input.unsqueeze(1)
    x = x.transpose(0, 1) if first else x
    states = _begin_states(self, x, hx, batched, packed)
    finals = []
    count = 2 if self.bidirectional else 1
    for layer in range(self.num_layers):
        begin = [state[layer * count : (layer + 1) * count] for state in states]
        x, final = _layer(self, layer, x, begin, lengths)
        finals.append(final)
    ends = [torch.cat(parts) for parts in zip(*finals, strict=True)]
    if lengths is not None and packed.unsorted_indices is not None:
        # packing sorted the batch by length
        ends = [end.index_select(1, packed.unsorted_indices) for end in ends]
    ends = ends if batched else [end.squeeze(1) for end in ends]
    result = tuple(ends) if self.mode == "LSTM" else ends[0]
    if layout is not None:
        return packed_like(x, layout, packed), result
    x = x.transpose(0, 1) if first else x
    return (x if batched else x.squeeze(1)), result


def _begin_states(self: Any, x: torch.Tensor, hx: Any, batched: bool, packed: Any) -> list[torch.Tensor]:
    if hx is None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        zero = x.new_zeros(count, x.shape[1], self.hidden_size)
        return [zero, zero] if self.mode == "LSTM" else [zero]
    given = list(hx) if self.mode == "LSTM" else [hx]
    given = given if batched else [state.unsqueeze(1) for state in given]
    if isinstance(packed, PackedSequence) and packed.sorted_indices is not None:
        given = [state.index_select(1, packed.sorted_indices) for state in given]
    return given


def _layer(self: Any, layer: int, x: torch.Tensor, begin: Sequence[torch.Tensor], lengths: Any) -> Any:
    """Writes one node. `x` is [steps, batch, features]. Returns [steps, batch, directions * hidden] and the final
    states."""
    sides = ["", "_reverse"][: 2 if self.bidirectional else 1]
    name = self.mode.partition("_")[0]
    weights = [
        torch.stack([_gates(getattr(self, f"{what}_l{layer}{side}"), name) for side in sides])
        for what in ("weight_ih", "weight_hh")
    ]
    bias = None
    if self.bias:
        pairs = [
            [_gates(getattr(self, f"bias_{what}_l{layer}{side}"), name) for what in ("ih", "hh")] for side in sides
        ]
        bias = torch.stack([torch.cat(pair) for pair in pairs])
    attributes: dict[str, Any] = {"hidden_size": self.hidden_size}
    attributes["direction"] = "bidirectional" if self.bidirectional else "forward"
    if name == "GRU":
        attributes["linear_before_reset"] = 1  # PyTorch's GRU applies the reset gate after the linear layer
    if self.mode == "RNN_RELU":
        attributes["activations"] = ["Relu"] * len(sides)
    ends = [(len(sides), x.shape[1], self.hidden_size)] * len(begin)
    given = [x, *weights, bias, None if lengths is None else lengths.to(torch.int32), *begin]
    result = torch.onnx.ops.symbolic_multi_out(
        name,
        given,
        attributes,
        dtypes=[x.dtype] * (1 + len(begin)),
        shapes=[(x.shape[0], len(sides), x.shape[1], self.hidden_size), *ends],
    )
    return result[0].transpose(1, 2).flatten(2), tuple(result[1:])


def _gates(weight: torch.Tensor, name: str) -> torch.Tensor:
    parts = weight.chunk(len(_GATES[name]))
    return torch.cat([parts[index] for index in _GATES[name]])


class ProjectedLstm(Rewrite):
    """Unrolls an LSTM with a projection (`proj_size`) for the example's number of steps, which fixes this axis.

    ONNX's operator has no projection, and torch.onnx's translation is wrong. A packed sequence is read in its padded
    form, with its lengths.
    """

    title = "an LSTM with a projection is unrolled for the example's number of steps"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_is_projected, module, _unrolled, stack)


def _is_projected(part: torch.nn.Module) -> bool:
    return type(part) is torch.nn.LSTM and part.proj_size > 0


def _unrolled(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002
    packed, layout, lengths = input, None, None
    if isinstance(packed, PackedSequence):
        input, layout = unpacked(packed)  # noqa: A001
        lengths = layout.lengths
    batched = input.dim() == 3
    first = self.batch_first and lengths is None and batched
    x = input if batched else input.unsqueeze(1)
    x = x.transpose(0, 1) if first else x
    begin = _projected_states(self, x, hx, packed)
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
    if layout is not None:
        if packed.unsorted_indices is not None:
            last = [state.index_select(1, packed.unsorted_indices) for state in last]
        return packed_like(x, layout, packed), tuple(last)
    x = x.transpose(0, 1) if first else x
    return (x, tuple(last)) if batched else (x.squeeze(1), tuple(state.squeeze(1) for state in last))


def _projected_states(self: Any, x: torch.Tensor, hx: Any, packed: Any) -> list[torch.Tensor]:
    """Returns the initial hidden and cell states of all layers and directions, [layers * directions, batch,
    features]."""
    if hx is None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return [x.new_zeros(count, x.shape[1], size) for size in (self.proj_size, self.hidden_size)]
    given = [state if state.dim() == 3 else state.unsqueeze(1) for state in hx]
    if isinstance(packed, PackedSequence) and packed.sorted_indices is not None:
        given = [state.index_select(1, packed.sorted_indices) for state in given]
    return given


def _direction(self: Any, name: str, x: torch.Tensor, states: list[torch.Tensor], lengths: torch.Tensor | None) -> Any:
    """Computes one direction of one layer. `x` is [steps, batch, features]. Returns the outputs and the final states.

    With `lengths`, [batch], steps after the end of a sequence do not change its states, in both directions.
    """
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
