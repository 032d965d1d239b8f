"""Compares arrays: floats by the largest difference relative to the largest magnitude, all others by equality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits


class Arrays(Kind):
    rank = 40

    def fits(self, answer: Any) -> bool:
        return isinstance(answer, np.ndarray | np.generic | float | complex)

    def differences(self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts) -> Iterator[Difference]:
        a, b = np.asarray(ours), np.asarray(theirs)
        if a.shape != b.shape:
            yield Difference(at, "shape", f"the shapes are {list(a.shape)} and {list(b.shape)}")
            return
        numbers = ("f", "c", "V")  # V: dtypes of ml_dtypes
        if a.dtype != b.dtype and a.ndim and not a.dtype.kind == b.dtype.kind == "U":
            yield Difference(at, "dtype", f"the dtypes are {a.dtype} and {b.dtype}")
        if a.dtype.kind not in numbers or b.dtype.kind not in numbers:
            yield from _exactly(a, b, at, counts)
            return
        limit = max(limits.of_array(a.dtype), limits.of_array(b.dtype))
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        x, y = a.astype(wide), b.astype(wide)
        finite = np.isfinite(x) & np.isfinite(y)
        with np.errstate(invalid="ignore"):
            odd = ~finite & ~((x == y) | (np.isnan(x) & np.isnan(y)))
        if odd.any():
            place = _first(odd)
            yield Difference(
                at + _index(place),
                "not finite",
                f"{_number(x[place])} and {_number(y[place])}; {int(odd.sum()):,} of {odd.size:,} elements are "
                "finite in only one of the two arrays",
            )
        scale = float(np.abs(x[finite]).max(initial=0.0)) or float(np.abs(y[finite]).max(initial=0.0))
        apart = np.zeros(x.shape)
        apart[finite] = np.abs(x[finite] - y[finite])
        share = float(apart.max(initial=0.0)) / scale / limit if scale and limit else float(apart.any())
        counts.add(int(np.count_nonzero(finite)), share if share <= 1 else 0.0)
        if scale and float(apart.max(initial=0.0)) > limit * scale:
            place = tuple(int(n) for n in np.unravel_index(int(np.argmax(apart)), apart.shape))
            beyond = int(np.count_nonzero(apart > limit * scale))
            yield Difference(
                at + _index(place),
                "numbers",
                f"{_number(x[place])} and {_number(y[place])}: {float(apart[place]) / scale:.2g} of the largest "
                f"magnitude, but {limit:.2g} is allowed; {beyond:,} of {apart.size:,} elements exceed this limit",
            )


def _exactly(a: Any, b: Any, at: str, counts: Counts) -> Iterator[Difference]:
    unequal = np.asarray(a != b)
    counts.add(int(unequal.size))
    if unequal.any():
        place = _first(unequal)
        yield Difference(
            at + _index(place),
            "values",
            f"{a[place]!s} and {b[place]!s}; {int(unequal.sum()):,} of {unequal.size:,} elements are unequal",
        )


def _first(mask: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _index(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""


def _number(value: Any) -> str:
    return f"{value:.7g}"
