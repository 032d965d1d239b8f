"""Loops over time as recurrent modules, scans and solvers write them: the graph is right for every length."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.lint import _block_branches


class Recurrent(nn.Module):
    """Options decide what a turn appends, which state there is, and along which axis the list is stacked."""

    def __init__(self, mixed: bool = True, sequences: bool = True, scaled: bool = False) -> None:
        super().__init__()
        self.memory, self.cell, self.out = nn.LSTMCell(4, 4), nn.GRUCell(4, 4), nn.Identity()
        self.mixed, self.sequences, self.scaled, self.batch_first = mixed, sequences, scaled, True

    def forward(self, x: torch.Tensor, hx: Any = None, spans: Any = None) -> Any:
        axis = 1 if self.batch_first else 0
        h, c = torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4) if self.mixed else None
        if hx is not None:
            h, c = hx
        outs = []
        for t in range(x.size(axis)):
            scale = 1.0 if spans is None else spans[:, t]
            if self.mixed:
                h, c = self.memory(x[:, t], (h, c))
            y = h = self.cell(x[:, t] * scale, h)
            if self.scaled:
                y = y * 2
            if self.sequences:
                outs.append(self.out(y))
        last = torch.stack(outs, dim=axis) if self.sequences else self.out(y)
        return last, ((h, c) if self.mixed else h)


class Both(nn.Module):
    """Two of them, whose options differ: the code of the class has to do for both."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Recurrent(), Recurrent(scaled=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.other(self.one(x)[0])


class Layers(nn.Module):
    """States in a list, a list of pairs and a dict, written by layers that stay unrolled."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4)])
        self.memories = nn.ModuleList([nn.LSTMCell(4, 4)])

    def forward(self, x: torch.Tensor) -> Any:
        hs = [x.new_zeros(x.shape[0], 4)] * 2
        pairs = [(torch.zeros(x.shape[0], 4), torch.zeros(x.shape[0], 4))]
        held = {"mean": torch.zeros(x.shape[0], 4)}
        outs = []
        for t in range(x.shape[1]):
            y = x[:, t]
            for i, cell in enumerate(self.cells):
                hs[i] = y = cell(y, hs[i])
            for i, memory in enumerate(self.memories):
                pairs[i] = memory(y, pairs[i])
                y = pairs[i][0]
            held["mean"] = held["mean"] * 0.5 + y
            outs.append(held["mean"].unsqueeze(1))
        return torch.cat(outs, 1), torch.stack(hs), pairs[0]


class Rows(nn.Module):
    """Rows with their numbers, written to a tensor that was made before; then backwards, in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        h, out, down = x[:, 0] * 0, torch.empty_like(x), torch.zeros_like(x)
        for i, row in enumerate(x.unbind(dim=1)):
            h = self.cell(row, h)
            out[:, i] = h
        for t in range(x.size(1) - 1, -1, -1):
            h = self.cell(x[:, t], h)
            down[:, t] = h
        outs = []
        for row in reversed(x.unbind(1)):
            h = self.cell(row, h)
            outs.append(h)
        outs.reverse()
        front: list[torch.Tensor] = []
        for t in reversed(range(x.shape[1])):
            h = h * 0.5 + x[:, t]
            front.insert(0, h)
        return out, down, torch.stack(outs, 1), torch.stack(front, 1)


class Turn(nn.Module):
    """Turns that ask for their number: the first, the last, every other one."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.often = nn.Linear(4, 4), 2

    def forward(self, x: torch.Tensor) -> Any:
        slow, last, total, outs = torch.zeros(x.shape[0], 4), None, x[:, 0] * 0, []
        begun = False
        for t in range(x.shape[1]):
            if t == 0:  # noqa: SIM108  # as users write it
                h = self.cell(x[:, t])
            else:
                h = self.cell(x[:, t]) + h.tanh() @ self.cell.weight.T
            if t % self.often == 1 and t > 1:
                slow, more = slow + h, h * 2
                total = total + more
            if t == x.shape[1] - 1:
                last = h
            y = h * 2 if begun else h
            begun = True
            outs.append(y + slow)
            if t == 0:
                continue
            total = total + x[:, t - 1]
        outs = torch.stack(outs, 1)
        return outs * 2, last, total


class Steps(nn.Module):
    """A list that starts with an element and is read by the turns, from one time to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 4)

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> Any:
        ys, start = [y], y
        for t0, t1 in zip(t[:-1], t[1:]):  # noqa: B905, RUF007  # as users write it
            y = y + (t1 - t0) * self.f(y)
            ys.append(y)
        more = [start]
        for i in range(1, len(t)):
            more.append(more[-1] + (t[i] - t[i - 1]) * self.f(more[i - 1]))
        more.append(start * 2)
        return torch.stack(ys), torch.stack(more[::-1], 1), more[0], len(ys) * y


class Scores(nn.Module):
    """The normaliser of a chain: no turn for a length of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = x[:, 0].clone()
        for i in range(1, x.shape[1]):
            score = torch.logsumexp(score.unsqueeze(2) + self.moves + x[:, i].unsqueeze(1), 1)
        return score.logsumexp(1)


def rows(length: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, length, 4, generator=torch.Generator().manual_seed(length)),)


def times(length: int) -> tuple[torch.Tensor, ...]:
    return torch.arange(float(length)) / 8, torch.ones(2, 4)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    ("net", "given", "axis"),
    [
        *((net, rows, "x:1=n") for net in (Recurrent(), Recurrent(mixed=False, sequences=False), Both(), Layers())),
        *((net, rows, "x:1=n") for net in (Rows(), Turn(), Scores())),
        (Steps(), times, "t:0=n"),
    ],
    ids=["options", "last only", "both", "layers", "rows", "turn", "scores", "steps"],
)
def test_the_graph_is_right_for_every_length(net: nn.Module, given: Any, axis: str) -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(net.eval(), given(8), dynamic=axis, strategy="torch-recomposed")
    assert result.ok, result.report.problems
    for length in (1, 2, 3, 11):
        args = given(length)
        with torch.no_grad():
            wanted = pytree.tree_leaves(net(*args))
        feeds = dict(zip((one.name for one in result.model.graph.inputs), (one.numpy() for one in args), strict=True))
        found = onnxsmith.run(result.model, feeds).outputs.values()
        for got, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(torch.from_numpy(got), want, rtol=1e-4, atol=1e-5)


def test_a_side_that_is_chosen_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_block_branches.Choosing, "_condition", lambda self, test: self._number(test))
    try:
        result = onnxsmith.export(Turn(), rows(8), dynamic="x:1=n", strategy="torch-recomposed", verify=True)
    except OnnxsmithError:
        return
    assert not result.ok
