"""Says which sizes an input may have: those that the user or the file gives, and those that fit the relations between
axes. A relation is solved: `past` is `32 - seq`, so `seq` is at most 32.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import listed, pasted
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.dim_ranges import Range, Size
from onnxsmith.graph.structure.signature import Signature, is_symbol

_SCANNED = 4096
"""Limits the sizes that are tried one by one for an expression that is not solved as a sum. A choice."""
_STEPS = (64, 32, 16, 8, 4, 2)
"""Lists numbers whose first multiple in a range is proposed. A choice: windows and strides take multiples only."""


@dataclass(frozen=True)
class _Relation:
    """An expression over symbols, and the range of its value. `name` is what users call it."""

    text: str
    names: tuple[str, ...]
    range: Range
    name: str


class SizeLimits:
    """Chooses sizes within limits. `known` are the sizes that stay fixed, also those that follow from others."""

    def __init__(self, signature: Signature, asked: dim_ranges.Asked) -> None:
        given = dim_ranges.read(asked)
        self._symbols = dims.symbols(signature)
        every: dict[str, Size] = {**signature.ranges, **given}
        self.known: dict[str, int] = {name: size for name, size in given.items() if isinstance(size, int)}
        self.declared = {name: one for name, one in every.items() if isinstance(one, Range) and one != Range()}
        """Holds the ranges that the user and the file give, by the name of the dimension."""
        self._ranges = {name: one for name, one in self.declared.items() if name in self._symbols}
        texts = {text: name for name, text in signature.relations.items()}
        expressions = {
            dim: texts.get(dim, dim)
            for port in signature.required()
            for dim in port.shape or ()
            if isinstance(dim, str) and dim not in self._symbols
        }
        self._relations = []
        for text, name in expressions.items():
            wanted = every.get(name, every.get(text, Range()))
            self.known.pop(name, None)
            self.known.pop(text, None)
            held = Range(wanted, wanted) if isinstance(wanted, int) else wanted
            names = tuple(one for one in dims.names_in(text) if one in self._symbols)
            if held != Range() or dims.is_affine(text):
                self._relations.append(_Relation(text, names, held, name))
        self.declared = {n: one for n, one in self.declared.items() if n in (*self._ranges, *expressions.values())}
        for _ in self._relations:
            self._narrow()
        if self and self.fitted(dict.fromkeys(self._symbols, 1)) is None:
            raise self._contradiction(self._relations[0])

    def __bool__(self) -> bool:
        return bool(self._ranges or self._relations)

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether the sizes are in their ranges, and no relation gives an axis a size out of its range."""
        inside = all(one.holds(sizes[name]) for name, one in self._ranges.items() if name in sizes)
        return inside and all(self._holds(one, sizes, one.range) for one in self._relations)

    def fitted(self, sizes: Mapping[str, int]) -> dict[str, int] | None:
        """Returns the nearest sizes within the limits; None if there are none. An axis that follows from others gets
        an element if it can."""
        if not self:
            return dict(sizes)
        found = {
            name: self.known.get(name, self._ranges[name].nearest(size) if name in self._ranges else size)
            for name, size in sizes.items()
        }
        for _ in range(len(self._relations) + 1):
            broken = [one for one in self._relations if not self._holds(one, found, _with_element(one.range))]
            if not broken:
                break
            mended = [self._mended(found, one) for one in broken]
            found = next((one for one in mended if one is not None), found)
        return found if self.allows(found) else None

    def ladder(self, symbol: str, usual: Sequence[int]) -> Sequence[int]:
        """Returns those of the usual sizes that the symbol may have, then others of its range."""
        own = self._ranges.get(symbol)
        if own is None:
            return usual
        low = max(own.least, 1)
        steps = [-(-low // step) * step for step in _STEPS]
        middle = [] if own.most is None else [(low + own.most) // 2]
        taken = [size for size in (*usual, *steps, *middle, *self.ends(symbol)) if own.holds(size)]
        return tuple(dict.fromkeys([size for size in taken if self._has_elements(symbol, size)] or taken))

    def ends(self, symbol: str) -> tuple[int, ...]:
        """Returns the least size of a symbol that has an element, and the largest; none without a range."""
        own = self._ranges.get(symbol)
        if own is None:
            return ()
        return tuple(
            size for size in dict.fromkeys((max(own.least, 1), own.most)) if size is not None and own.holds(size)
        )

    def emptying(self, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Yields sizes at which an axis that follows from others is empty."""
        for one in self._relations:
            if one.range.holds(0):
                found = self._mended(sizes, _Relation(one.text, one.names, Range(0, 0), one.name))
                if found is not None:
                    yield found

    def _has_elements(self, symbol: str, size: int) -> bool:
        """Whether every axis that follows from this symbol alone has an element."""
        return all(
            self._holds(one, {symbol: size, **self.known}, _with_element(one.range))
            for one in self._relations
            if symbol in one.names and all(name == symbol or name in self.known for name in one.names)
        )

    def _narrow(self) -> None:
        """Takes over what a relation of a single free symbol says about it."""
        for one in self._relations:
            free = [name for name in one.names if name not in self.known]
            if not free and not self._holds(one, self.known, one.range):
                raise self._contradiction(one)
            if len(free) != 1:
                continue
            solved = self._interval(one, free[0], self.known)
            if solved is None:
                continue
            narrowed = solved.both(self._ranges.get(free[0], Range()))
            if narrowed is None:
                raise self._contradiction(one)
            if narrowed.least == narrowed.most:
                self.known[free[0]] = narrowed.least
            elif narrowed != Range():
                self._ranges[free[0]] = narrowed

    def _contradiction(self, one: _Relation) -> OnnxsmithError:
        free = [name for name in one.names if name not in self.known or name in self._ranges] or list(one.names)
        solved = self._interval(one, free[0], self.known) if len(one.names) == 1 else None
        fix = f"give {' and '.join(one.names)} sizes for which {one.name} has one"
        if solved is not None and one.range.least != one.range.most:
            fix = f"--dim {pasted(free[0])}={solved}"
        elif one.range != Range():
            fix = f"remove --dim {pasted(one.name)}: this size follows from {' and '.join(one.names)}"
        bound = f", but has to be in {one.range}" if one.range != Range() else ""
        known = ", ".join(f"{n} = {self.known[n]}" if n in self.known else f"{n} = {self._ranges[n]}"
                          for n in one.names if n in self.known or n in self._ranges)  # fmt: skip
        return problem(
            "input/size-range",
            (f"no sizes satisfy the relation of the axes at {known}")
            if known
            else "no sizes satisfy the relation of the axes",
            why=f"{one.name} is {one.text}{bound}, and a size cannot be negative",
            fix=fix,
        )

    def _interval(self, one: _Relation, name: str, others: Mapping[str, int]) -> Range | None:
        """Returns the sizes of one symbol for which the expression is in its range; None if there are none, or if they
        are not known."""
        low, high = one.range.least, one.range.most
        if not dims.is_affine(one.text):
            held = [at for at in range(_SCANNED) if self._holds(one, {**others, name: at}, one.range, unknown=False)]
            return Range(held[0], held[-1] if held[-1] < _SCANNED - 1 else None) if held else None
        start, after = (dims.amount(one.text, {**others, name: at}) for at in (0, 1))
        if start is None or after is None or start == after:
            return None
        slope = after - start
        ends = [(low - start) / slope, None if high is None else (high - start) / slope]
        least, most = ends if slope > 0 else ends[::-1]
        first = 0 if least is None else max(math.ceil(least), 0)
        last = None if most is None else math.floor(most)
        return None if last is not None and last < first else Range(first, last)

    def _mended(self, sizes: Mapping[str, int], one: _Relation) -> dict[str, int] | None:
        """Returns the sizes with one symbol of the relation changed so that it holds; the other symbols are made small
        if need be."""
        free = [name for name in one.names if name not in self.known]
        small = {name: self.ends(name)[0] if self.ends(name) else 1 for name in free}
        for others in (sizes, {**sizes, **small}):
            for name, wanted in itertools.product(reversed(free), (_with_element(one.range), one.range)):
                solved = self._interval(_Relation(one.text, one.names, wanted, one.name), name, others)
                within = solved.both(self._ranges.get(name, Range())) if solved is not None else None
                if within is None:
                    continue
                found = {**others, name: within.nearest(others.get(name, 1))}
                if self._holds(one, found, one.range):
                    return found
        return None

    def _holds(self, one: _Relation, sizes: Mapping[str, int], wanted: Range, *, unknown: bool = True) -> bool:
        """Whether the expression is in a range at these sizes; `unknown` if it has no value there."""
        value = dims.amount(one.text, sizes)
        if value is None:
            return unknown
        return wanted.least <= value and (wanted.most is None or value <= wanted.most)


def _with_element(range_: Range) -> Range:
    return range_ if range_.most == 0 else Range(max(range_.least, 1), range_.most)


def refuse_unknown(asked: dim_ranges.Asked, *interfaces: Signature) -> None:
    """Refuses a size for a dimension that no input of the interfaces has.

    Raises:
        OnnxsmithError: `input/unknown-dim`, and the errors of reading the sizes.
    """
    given = dim_ranges.read(asked)
    known = dict.fromkeys(name for interface in interfaces for name in names(interface))
    open_ = tuple(f"{port.name}." for interface in interfaces for port in interface.inputs if port.shape is None)
    stray = next((name for name in given if name not in known and not name.startswith(open_)), None)
    if stray is None:
        return
    near = near_names(stray, known, 1)
    size = given[stray]
    fix = f"give one of: {listed(known)}" if known else "remove --dim: all sizes are fixed"
    raise problem(
        "input/unknown-dim",
        f"no input has a dimension called {stray!r}",
        why=f"the dimensions are: {listed(known)}" if near else "",
        fix=f"write --dim {pasted(near[0])}={size}" if near else fix,
    )


def names(interface: Signature) -> tuple[str, ...]:
    """Returns the names of the dimensions of the inputs: the symbols, and those that follow from them."""
    dims_ = [dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str) and is_symbol(dim)]
    return tuple(dict.fromkeys((*dims.symbols(interface), *dims_, *interface.relations)))
