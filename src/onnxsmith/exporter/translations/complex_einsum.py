"""`einsum` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import joined, numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexEinsum(Translation):
    """The sum over all choices of a part of each operand, each with its power of i."""

    targets = ("aten::einsum",)

    def decompose(self, equation: str, tensors: Sequence[Any], *, path: Any = None) -> Any:
        del path
        if not any(one.is_complex() for one in tensors):
            return NotImplemented
        choices = [
            list(torch.view_as_real(one.resolve_conj()).unbind(-1)) if one.is_complex() else [one] for one in tensors
        ]
        signed: tuple[list[Any], list[Any]] = ([], [])
        for chosen in itertools.product(*map(enumerate, choices)):
            power = sum(at for at, _ in chosen)
            term = torch.einsum(equation, [one for _, one in chosen])
            signed[power % 2].append(term if power % 4 < 2 else -term)
        return joined(sum(signed[0][1:], signed[0][0]), sum(signed[1][1:], signed[1][0]))

    def samples(self) -> Iterator[Sample]:
        yield Sample(("nm,mk->nk", [numbers(3, 4), numbers(4, 2)]))
        yield Sample(("nm,m,nk->k", [numbers(3, 4), numbers(4), numbers(3, 4)]))
        yield Sample(("nm,nm->n", [torch.randn(2, 3), torch.randn(2, 3)]))
