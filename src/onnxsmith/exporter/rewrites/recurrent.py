"""Traces recurrent layers as ONNX's operators; torch.export would unroll them for the example's number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""The indices of PyTorch's gates in ONNX's order: input, output, forget, cell (LSTM); update, reset, hidden (GRU)."""


class Recurrent(Rewrite):
    """Writes each layer of nn.LSTM, nn.GRU and nn.RNN as one node. ONNX has no operator with a projection
    (`proj_size`).

    A packed sequence arrives in the form of `packed_sequences.py`: padded, with its lengths.
    """

    title = "LSTM, GRU and RNN layers become ONNX operators, so that the sequence length stays dynamic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        # TorchDynamo, which traces the bodies of loops, looks into no function of torch.onnx.
        allow: Any = torch.compiler.allow_in_graph
        allow(torch.onnx.ops.symbolic_multi_out)
        return instead_where(_fits, module, _forward, stack)


def _fits(part: torch.nn.Module) -> bool:
    kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
    return type(part) in kinds and not getattr(part, "proj_size", 0)


def _forward(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002
    packed, lengths = input, None
    if isinstance(packed, PackedSequence):
        input, lengths = packed.data, packed.batch_sizes  # noqa: A001
    batched = input.dim() == 3
    first = self.batch_first and lengths is None and batched
    x = input if batched else input.unsqueeze(1)
    x = x.transpose(0, 1) if first else x
    states = _states(self, x, hx, batched, packed)
    finals = []
    count = 2 if self.bidirectional else 1
    for layer in range(self.num_layers):
        begin = [state[layer * count : (layer + 1) * count] for state in states]
        x, final = _layer(self, layer, x, begin, lengths)
        finals.append(final)
    ends = [torch.cat(parts) for parts in zip(*finals, strict=True)]
    if lengths is not None and packed.unsorted_indices is not None:
        ends = [end.index_select(1, packed.unsorted_indices) for end in ends]
    ends = ends if batched else [end.squeeze(1) for end in ends]
    result = tuple(ends) if self.mode == "LSTM" else ends[0]
    if lengths is not None:
        return PackedSequence(x, lengths, packed.sorted_indices, packed.unsorted_indices), result
    x = x.transpose(0, 1) if first else x
    return (x if batched else x.squeeze(1)), result


def _states(self: Any, x: torch.Tensor, hx: Any, batched: bool, packed: Any) -> list[torch.Tensor]:
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
    """Writes one node. `x` is [steps, batch, features]; returns [steps, batch, directions * hidden] and the final
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
