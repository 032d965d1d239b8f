"""Pairs the inputs and outputs of two graphs, and says how they differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import PortChange
from onnxsmith.graph.reading.exact_text import value_type
from onnxsmith.graph.structure import carried_fields

Values = Sequence[ir.Value]
Pair = tuple[ir.Value, ir.Value]


def paired(ours: Values, theirs: Values, *, by_name: bool) -> list[Pair]:
    """Pairs the ports of two graphs: by name if callers use the names, then by equal types, dtypes and positions."""
    if not by_name and len(ours) == len(theirs):
        return list(zip(ours, theirs, strict=True))
    left: tuple[list[int], list[int]] = list(range(len(ours))), list(range(len(theirs)))
    found: list[tuple[int, int]] = []
    for key in (_name, _type, _rank, _any):
        if key is _any and len(left[0]) != len(left[1]):
            break
        for one in list(left[0]):
            other = next((n for n in left[1] if key(ours[one]) == key(theirs[n])), None)
            if other is not None:
                found.append((one, other))
                left[0].remove(one)
                left[1].remove(other)
    return [(ours[one], theirs[other]) for one, other in sorted(found)]


def _name(value: ir.Value) -> Hashable:
    return value.name or None


def _type(value: ir.Value) -> Hashable:
    shape = None if value.shape is None else tuple(dim if isinstance(dim, int) else None for dim in value.shape)
    return str(value.type), shape


def _rank(value: ir.Value) -> Hashable:
    return str(value.type), None if value.shape is None else len(value.shape)


def _any(value: ir.Value) -> Hashable:
    return None


def type_text(value: ir.Value) -> str:
    """Writes the type of a value, also of a map."""
    odd = carried_fields.odd_type(value)
    return " ".join(str(odd).split()) if odd is not None else value_type(value) or "?"


class Dimensions:
    """Pairs the names of symbolic dimensions: each name of one model corresponds to one name of the other."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def same(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether two values have the same type, up to names of dimensions. Remembers the pairs of names."""
        if a.shape is None:
            return type_text(a) == type_text(b)
        if b.shape is None or len(a.shape) != len(b.shape) or a.type != b.type:
            return False
        if carried_fields.odd_type(a) is not None or carried_fields.odd_type(b) is not None:
            return type_text(a) == type_text(b)
        names: list[tuple[str, str]] = []
        for one, other in zip(a.shape, b.shape, strict=True):
            if isinstance(one, int) or isinstance(other, int):
                if one != other:
                    return False
            elif one.value is None or other.value is None:
                if one.value is not other.value:
                    return False
            else:
                names.append((one.value, other.value))
        if any(self._new.get(x, y) != y or self._old.get(y, x) != x for x, y in names):
            return False
        for x, y in names:
            self._new[x], self._old[y] = y, x
        return True

    def renamed(self) -> list[tuple[str, str]]:
        """Returns the dimensions whose names differ."""
        return [(x, y) for x, y in self._new.items() if x != y]


def defaults(ours: Values, theirs: Values) -> Iterator[PortChange]:
    """Yields the inputs with a default value that only one of two graphs has: a caller may give them another value."""
    old, new = ({value.name or "": value for value in values} for values in (ours, theirs))
    for name, value in old.items():
        if name not in new:
            yield PortChange("input", "removed", name, f"{type_text(value)} with a default", "-")
    for name, value in new.items():
        if name not in old:
            yield PortChange("input", "added", name, "-", f"{type_text(value)} with a default")


def changes(
    side: str, ours: Values, theirs: Values, pairs: Sequence[Pair], path: str, dimensions: Dimensions
) -> Iterator[PortChange]:
    """Yields the differences of the ports of one side (`input` or `output`)."""
    place: Callable[[Values, ir.Value], str] = lambda values, one: str([v is one for v in values].index(True))  # noqa: E731
    old, new = {a for a, _ in pairs}, {b for _, b in pairs}
    for a, b in pairs:
        if a.name != b.name:
            yield PortChange(side, "renamed", a.name or "", a.name or "", b.name or "", path)
        if not dimensions.same(a, b):
            yield PortChange(side, "type", a.name or "", type_text(a), type_text(b), path)
    yield from (PortChange(side, "removed", a.name or "", type_text(a), "-", path) for a in ours if a not in old)
    yield from (PortChange(side, "added", b.name or "", "-", type_text(b), path) for b in theirs if b not in new)
    order = [a for a in ours if a in old]
    partner = dict(pairs)
    if [partner[a] for a in order] != [b for b in theirs if b in new]:
        for a in order:
            if place(ours, a) != place(theirs, partner[a]):
                yield PortChange(side, "order", a.name or "", place(ours, a), place(theirs, partner[a]), path)
