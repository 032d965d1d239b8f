"""An LSTM with a projection, step by step: ONNX's operator has none, and torch.onnx translates it to something else."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite, instead


class ProjectedLstm(Rewrite):
    """nn.LSTM with `proj_size`, written out for the number of steps that the example has. That axis cannot be
    dynamic."""

    title = "an LSTM with a projection is written out step by step, for as many steps as the example has"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        found = [part for part in module.modules() if type(part) is torch.nn.LSTM and part.proj_size]
        for part in found:
            instead(part, _forward, stack)
        return bool(found)


def _forward(self: Any, input: torch.Tensor, hx: Any = None) -> Any:  # noqa: A002
    if not isinstance(input, torch.Tensor):
        raise NotImplementedError("a packed sequence in an LSTM with a projection")
    batched = input.dim() == 3
    x = input if batched else input.unsqueeze(1)
    x = x.transpose(0, 1) if self.batch_first and batched else x
    count = self.num_layers * (2 if self.bidirectional else 1)
    sizes = (self.proj_size, self.hidden_size)
    begin = [x.new_zeros(count, x.shape[1], size) for size in sizes]
    if hx is not None:
        begin = [state if batched else state.unsqueeze(1) for state in hx]
    ends: list[tuple[torch.Tensor, torch.Tensor]] = []
    for layer in range(self.num_layers):
        outs = []
        for side in ["", "_reverse"][: 2 if self.bidirectional else 1]:
            out, *end = _direction(self, f"l{layer}{side}", x, begin[0][len(ends)], begin[1][len(ends)])
            outs.append(out)
            ends.append((end[0], end[1]))
        x = torch.cat(outs, -1)
    hidden, cell = (torch.stack(parts) for parts in zip(*ends, strict=True))
    x = x.transpose(0, 1) if self.batch_first and batched else x
    if not batched:
        x, hidden, cell = x.squeeze(1), hidden.squeeze(1), cell.squeeze(1)
    return x, (hidden, cell)


def _direction(self: Any, name: str, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> Any:
    """One direction of one layer: `x` is [steps, batch, features]; gives the outputs and the last two states."""
    weights = [getattr(self, f"weight_{what}_{name}") for what in ("ih", "hh", "hr")]
    biases = [getattr(self, f"bias_{what}_{name}") if self.bias else None for what in ("ih", "hh")]
    steps = list(x.unbind(0))
    outs = []
    for step in reversed(steps) if name.endswith("_reverse") else steps:
        gates = torch.nn.functional.linear(step, weights[0], biases[0])
        gates = gates + torch.nn.functional.linear(hidden, weights[1], biases[1])
        enter, forget, new, out = gates.chunk(4, -1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = torch.nn.functional.linear(out.sigmoid() * cell.tanh(), weights[2])
        outs.append(hidden)
    return torch.stack(outs[::-1] if name.endswith("_reverse") else outs), hidden, cell
