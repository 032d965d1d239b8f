"""Where two loops part that are given the same: the first iteration, and in it the first tensor, that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import is_float
from onnxsmith.layers.look import held
from onnxsmith.report.parts.layers import Inside
from onnxsmith.runtimes.base import Value

_TERMS = 1024
"""Terms that one step in a body is taken to sum."""


@dataclass(frozen=True)
class Inner:
    """A tensor in the bodies of a node: `values` are those of each time that it was computed, in order."""

    name: str
    op: str
    label: str
    values: Sequence[Value]


def first_inside(reference: Sequence[Inner], candidate: Sequence[Inner]) -> Inside | None:
    """The first that differs by more than rounding, in the order in which they are computed: iteration by iteration,
    and in each as the body goes. None where nothing that both have does."""
    pairs = list(_paired(reference, candidate))
    moments = sorted(
        (number / max(len(b.values), 1), place, number)
        for place, (_, b) in enumerate(pairs)
        for number in range(len(b.values))
    )
    for _, place, number in moments:
        a, b = pairs[place]
        if number >= len(a.values):
            why = f"computed {len(b.values)} times, and {len(a.values)} times in the reference"
            return Inside(b.name, b.op, b.label, number + 1, len(b.values), why)
        found = held(a.values[number], b.values[number], _rounding(a.values[number], (number + 1) * (place + 1)))
        if found.reason:
            return Inside(b.name, b.op, b.label, number + 1, len(b.values), found.reason)
    return None


def _paired(reference: Sequence[Inner], candidate: Sequence[Inner]) -> Iterator[tuple[Inner, Inner]]:
    """Bodies of the same operators one by one; else what has the same name."""
    if [one.op for one in reference] == [one.op for one in candidate]:
        yield from zip(reference, candidate, strict=True)
        return
    by_name = {one.name: one for one in reference}
    yield from ((by_name[one.name], one) for one in candidate if one.name in by_name)


def _rounding(value: Value, steps: int) -> Rounding:
    coarse = isinstance(value, np.ndarray) and is_float(value) and value.dtype.kind != "c"
    unit = float(ml_dtypes.finfo(np.asarray(value).dtype).eps) / 2 if coarse else 2.0**-24  # type: ignore[no-untyped-call]
    return Rounding(terms=_TERMS * steps, depth=steps, unit=unit)
