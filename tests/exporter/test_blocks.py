"""Loops whose number of turns follows from a size become a Loop of the graph, which follows the module as it was."""

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # as users write it
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.lint import _block_loops
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import observe
from onnxsmith.exporter.tracing.trace_patches import compiled


class Joined(nn.Module):
    """Blocks, the last one shorter, joined along their own axis; each looks at the block before."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.block = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        n = x.shape[1]
        outs = []
        for i in range(0, n, self.block):
            low, high = max(0, i - self.block), min(n, i + self.block)
            weights = torch.softmax(q[:, i:high] @ k[:, low:high].transpose(1, 2) / math.sqrt(4), -1)
            outs.append(weights @ v[:, low:high])
        return torch.cat(outs, dim=1)


class Largest(nn.Module):
    """A comprehension, of which torch.stack makes an axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([c.amax(1) for c in x.split(3, 1)], dim=-1)


class OverlapAdd(nn.Module):
    """Windows that are added where they overlap."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (0, 4))
        out = torch.zeros_like(padded)
        for i in range(math.ceil(x.shape[1] / 2)):
            out[:, i * 2 : i * 2 + 4] += padded[:, i * 2 : i * 2 + 4] * self.window
        return out[:, : x.shape[1]]


class Scored(nn.Module):
    """A tensor to which each turn adds in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = x[:, 0] * 0
        for i in range(0, x.shape[1], 2):
            score += x[:, i].softmax(-1)
        return score


class States(nn.Module):
    """A state that is None before the first turn, a sum that is a number, a count, and a first turn of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, total, count = None, 0.0, 0
        parts = []
        for i, c in enumerate(torch.split(x, 3, dim=1)):
            y, h = self.gru(c, h)
            y = y.tanh() if i == 0 else y * 2
            total = total + y.mean(1)
            count += 1
            parts += [y]
        return torch.cat(parts, 1), total / count


class Mask(nn.Module):
    """A mask that is written row by row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        mask = torch.zeros(n, n, dtype=torch.bool)
        for i in range(n):
            mask[i, max(0, i // 2 * 2 - 2) : min(i // 2 * 2 + 2, n)] = True
        return (x @ x.transpose(1, 2)).masked_fill(~mask, -1e4).softmax(-1) @ x


class Until(nn.Module):
    """`while` with a step that the last turn shortens, and with one that it does not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        start = 0
        while start < x.shape[1]:
            end = min(start + 3, x.shape[1])
            out[:, start:end] = x[:, start:end].softmax(1)
            start = end
        parts, at = [], 0
        while at < x.shape[1]:
            parts.append(x[:, at : at + 2].flip(1))
            at += 2
        return out + torch.cat(parts, 1)


class Padded(nn.Module):
    """A last block that is padded, by a helper."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 2, 3, padding=1)

    def blocks(self, x: torch.Tensor, size: int) -> torch.Tensor:
        out = self.conv(x[..., :0].new_zeros(x.shape[0], 4, 1))
        for s in range(0, x.shape[-1], size):
            c = x[..., s : s + size]
            short = size - c.shape[-1]
            if short > 0:
                c = F.pad(c, (0, short))
            out = torch.cat([out, self.conv(c)], -1)
        return out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x.transpose(1, 2), 3)


class Named(nn.Module):
    """Lists that are joined under other names, in a helper's rows, to a mask whose size torch cannot compare."""

    def widths(self, i: int, n: int) -> list[int]:
        low, high = max(i * 3 - 2, 0), min(i * 3 + 3, n)
        return [low, high - low, n - high]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        rows: list[torch.Tensor] = []
        every = [rows]
        for i in range(math.ceil(n / 3)):
            count = min(3, n - i * 3)
            before, own, after = self.widths(i, n)
            parts = [torch.zeros(count, before), torch.ones(count, own), torch.zeros(count, after)]
            rows.append(torch.cat(parts, dim=1))
        mask = torch.cat([torch.cat(one) for one in every]).to(torch.bool)
        return (x @ x.transpose(1, 2)).masked_fill(~mask, -1e4).softmax(-1) @ x


class Counted(nn.Module):
    """A number of blocks that follows from the size, a list with a sum and a length, and rows by their number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        best = None
        for part in x.chunk(max(1, x.shape[1] // 4), dim=1):
            top = part.logsumexp(1)
            best = top if best is None else torch.maximum(best, top)
        squares = []
        for c in x.split(3, 1):
            squares.append((c**2).mean((1, 2)))  # noqa: PERF401
        grid = torch.zeros_like(x)
        for i in range(0, x.shape[1], 3):
            for j in range(0, x.shape[1], 4):
                grid[:, i : i + 3] += x[:, j : j + 4].mean((1, 2), keepdim=True)
        return best + grid.mean(1) + (sum(squares) / len(squares))[:, None]


@pytest.mark.parametrize(
    "net",
    [Named(), Counted(), Joined(), Largest(), States(), Mask(), Until(), Padded(), Scored()],
    ids=lambda net: type(net).__name__,
)
def test_the_graph_follows_the_loop(net: nn.Module) -> None:
    result = onnxsmith.export(net.eval(), (torch.randn(2, 8, 4),), dynamic="x:0=b,1=n", strategy="torch-recomposed")
    assert result.ok, result.report.problems
    assert "Loop" in {node.op_type for node in result.model.graph}
    assert any("while_loop" in note or "def block" in note for note in result.report.part(Capture).notes)


def test_it_is_tried_by_itself_after_a_graph_that_differs() -> None:
    result = onnxsmith.export(OverlapAdd(), (torch.randn(2, 8),), dynamic="x:0=b,1=n")
    assert result.ok
    assert "recomposed" in result.report.part(Capture).how
    assert "other results" in result.report.part(Capture).tried[0]


def test_a_loop_with_a_turn_too_few_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patch = _block_loops.patch

    def short(loop: Any) -> Any:
        turns = loop.turns
        object.__setattr__(loop, "turns", type(turns)(f"({turns.count}) - 1", turns.bound, turns.before, turns.index))
        return patch(loop)

    monkeypatch.setattr(_block_loops, "patch", short)
    result = onnxsmith.export(
        OverlapAdd(), (torch.randn(2, 8),), dynamic="x:0=b,1=n", strategy="torch-recomposed", verify=True
    )
    assert not result.ok


class Leaves(nn.Module):
    """`break`: a turn that ends the loop early."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x[:, 0] * 0
        for i in range(0, x.shape[1], 3):
            if i > 4:
                break
            out = out + x[:, i : i + 3].sum(1)
        return out


class Kept(nn.Module):
    """A list of which single elements are read after the loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = []
        for c in x.split(3, 1):
            parts.append(c * 2)  # noqa: PERF401
        return torch.cat(parts, 1) * parts[-1].mean()


@pytest.mark.parametrize("net", [Leaves(), Kept()], ids=["break", "a list that is read"])
def test_what_is_no_loop_of_a_graph_is_refused(net: nn.Module) -> None:
    args = (torch.randn(2, 8, 4),)
    try:
        result = onnxsmith.export(net, args, dynamic="x:1=n", strategy="torch-recomposed")
    except OnnxsmithError:
        return
    assert not result.ok


class Lengths(nn.Module):
    """The size of a mask is a number of the data."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        longest = int(torch.max(lengths).item())
        mask = torch.arange(longest).expand(lengths.shape[0], longest) < lengths.unsqueeze(1)
        return mask.sum(1) + x.sum(1).long()


def test_int_of_an_item_stays_a_number_of_the_graph() -> None:
    args = (torch.rand(3, 4), torch.tensor([2, 5, 1]))
    result = onnxsmith.export(Lengths(), args, dynamic="x:0=b;lengths:0=b", strategy="torch-recomposed")
    assert result.ok
    assert any("sym_int" in note for note in result.report.part(Capture).notes)


@pytest.mark.parametrize("net", [Joined(), Largest()], ids=lambda net: type(net).__name__)
def test_the_code_to_paste_computes_what_the_loop_does(net: nn.Module) -> None:
    args = (torch.randn(2, 8, 4),)
    seen = observe(TorchModel(net.eval(), args, {}))
    ((code, _, patch),) = [
        one
        for one in source_linting.patched(net, seen.calls, lambda file: file == __file__)
        if one[1].problem.id == "forward/loop-over-blocks"
    ]
    assert "torch.while_loop" in patch.text
    made = compiled(code, patch.swaps)
    assert made is not None
    pasted = FunctionType(made, code.function.__globals__)
    for size in (2, 8):
        x = torch.randn(2, size, 4)
        with torch.no_grad():
            torch.testing.assert_close(pasted(net, x), net(x))
