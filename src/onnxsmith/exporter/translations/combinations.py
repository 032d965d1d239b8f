"""`combinations`: every choice of so many elements of a vector."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._constants import constant
from onnxsmith.exporter.translations.base import Sample, Translation


class Combinations(Translation):
    """A table of places, looked up. Of a dynamic length it is computed: the places of a grid, one axis for each of the
    elements, whose numbers rise from axis to axis; they come in the same order."""

    targets = ("aten::combinations",)
    functions = (torch.combinations,)

    def decompose(self, x: Any, r: int = 2, with_replacement: bool = False) -> Any:
        if x.dim() != 1 or r < 1:
            return NotImplemented
        if not isinstance(x.shape[0], int):
            return x[_rising(x.shape[0], r, with_replacement)].reshape(-1, r)
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        places = list(itertools.chain.from_iterable(choose(range(x.shape[0]), r)))
        if not places:
            return x.new_zeros((0, r))
        return x.index_select(0, constant(places, torch.int64)).reshape(-1, r)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(4)
        for r in (1, 2, 3, 5):
            yield Sample((x, r), around=torch_combinations)
            yield Sample((x, r, True), around=torch_combinations)
        yield Sample((torch.arange(3),), around=torch_combinations)
        for r, again in ((2, False), (3, False), (2, True), (1, False)):
            yield Sample((torch.randn(5), r, again), dynamic={0: {0: "n"}}, around=torch_combinations)


def _rising(length: Any, r: int, with_replacement: bool) -> torch.Tensor:
    """Numbers of elements, int64 [combinations, r]."""
    numbers = torch.arange(length)
    axes = [numbers.reshape([-1 if axis == at else 1 for axis in range(r)]) for at in range(r)]
    wanted = torch.ones([length] * r, dtype=torch.bool)
    for left, right in itertools.pairwise(axes):
        wanted = wanted & (left <= right if with_replacement else left < right)
    return torch.nonzero(wanted)


def torch_combinations(_: Any, *args: Any) -> torch.Tensor:
    """By the function, which is what a module calls."""
    return torch.combinations(*args)
