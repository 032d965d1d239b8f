"""`combinations`: every choice of so many elements of a vector."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._constants import constant
from onnxsmith.exporter.translations.base import Sample, Translation


class Combinations(Translation):
    """A table of places, looked up. It has the length of the vector, which therefore cannot be dynamic."""

    targets = ("aten::combinations",)
    functions = (torch.combinations,)

    def decompose(self, x: Any, r: int = 2, with_replacement: bool = False) -> Any:
        if x.dim() != 1 or not isinstance(x.shape[0], int) or r < 1:
            return NotImplemented
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


def torch_combinations(_: Any, *args: Any) -> torch.Tensor:
    """By the function, which is what a module calls."""
    return torch.combinations(*args)
