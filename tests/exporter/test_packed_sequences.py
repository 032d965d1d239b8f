"""Packed sequences are exported for all lengths, also without a recurrent layer, or with their rows read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence  # noqa: E402

from tests.exporter.test_rewriting import follows  # noqa: E402

pytestmark = pytest.mark.torch

LENGTHS = [2, 5, 3], [1], [4, 1, 3, 4], [2, 6]
AXES = "x:0=b,1=t;lengths:0=b"


class Packed(nn.Module):
    """Packs a batch, and returns what `inner` makes of the packed sequence."""

    def __init__(
        self, inner: Callable[..., Any], *parts: nn.Module, batch_first: bool = True, sort: bool = True
    ) -> None:
        super().__init__()
        self.inner, self.batch_first, self.sort = inner, batch_first, sort
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=self.batch_first, enforce_sorted=not self.sort)
        return self.inner(x, packed, *self.parts)


def again(packed: PackedSequence, data: torch.Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def examples(*features: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Batches whose longest sequence fills the steps, and one whose does not."""
    made = [(torch.rand(len(one), max(one), *features), torch.tensor(one)) for one in LENGTHS]
    return [*made, (torch.rand(2, 7, *features), torch.tensor([4, 3]))]


@pytest.mark.parametrize("features", [(), (3,), (2, 3)])
def test_padding_what_was_packed(features: tuple[int, ...]) -> None:
    module = Packed(lambda x, packed: pad_packed_sequence(packed, batch_first=True, padding_value=-9.0))
    follows(module, *examples(*features), dynamic=AXES)


def test_steps_first_and_sorted() -> None:
    module = Packed(lambda x, packed: pad_packed_sequence(packed), batch_first=False, sort=False)
    args = [(x.transpose(0, 1), lengths.sort(descending=True)[0]) for x, lengths in examples(3)]
    follows(module, *args, dynamic="x:0=t,1=b;lengths:0=b")


def test_integers() -> None:
    module = Packed(lambda x, packed: pad_packed_sequence(packed, batch_first=True, padding_value=7))
    args = [((9 * x).long(), lengths) for x, lengths in examples()]
    follows(module, *args, dynamic=AXES)


def test_the_rows_are_read_and_packed_again() -> None:
    def normed(x: torch.Tensor, packed: PackedSequence, norm: nn.Module) -> Any:
        return pad_packed_sequence(again(packed, norm(packed.data)), batch_first=True)

    norm = nn.BatchNorm1d(3).eval()
    assert norm.running_mean is not None
    nn.init.uniform_(norm.running_mean)
    follows(Packed(normed, norm), *examples(3), dynamic=AXES)


def test_the_fields_of_a_packed_sequence() -> None:
    # sorted lengths: torch.sort leaves the order of equal lengths open, and with it the order of the rows
    module = Packed(lambda x, packed: (packed.data, packed.batch_sizes), sort=False)
    args = [(x, lengths.sort(descending=True)[0]) for x, lengths in examples(3)]
    follows(module, *args, dynamic=AXES)


def test_rows_between_recurrent_layers() -> None:
    def stacked(x: torch.Tensor, packed: PackedSequence, first: nn.Module, middle: nn.Module, second: nn.Module) -> Any:
        rows, _ = first(packed)
        rows, last = second(again(rows, middle(rows.data)))
        return pad_packed_sequence(rows, batch_first=True)[0], last

    module = Packed(stacked, nn.GRU(3, 4), nn.Linear(4, 2), nn.GRU(2, 3, bidirectional=True))
    follows(module, *examples(3), dynamic=AXES)


@pytest.mark.parametrize("total", [lambda x: x.shape[1], lambda x: 8], ids=["the steps of the input", "a number"])
def test_a_total_length(total: Callable[[torch.Tensor], int]) -> None:
    def padded(x: torch.Tensor, packed: PackedSequence, layer: nn.Module) -> Any:
        rows = pad_packed_sequence(layer(packed)[0], batch_first=True, padding_value=-9.0, total_length=total(x))
        return *rows, pad_packed_sequence(packed, total_length=total(x))[0]

    follows(Packed(padded, nn.GRU(3, 4)), *examples(3), dynamic=AXES)


def test_a_total_length_below_the_steps_of_the_input() -> None:
    module = Packed(lambda x, packed: pad_packed_sequence(packed, batch_first=True, total_length=5))
    args = [(torch.rand(2, 6, 3), torch.tensor(one)) for one in ([3, 5], [1, 2], [4, 4])]
    follows(module, *args)
