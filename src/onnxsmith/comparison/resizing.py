"""Runs the reference at other sizes: several symbols at once, and one by one where it does not take them together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from onnxsmith.comparison.trying import Run, Tries
from onnxsmith.feeds import sizes as proposals
from onnxsmith.feeds.generate import Manner

_PER_SYMBOL = 2
"""Sizes of each symbol beside the base's, where they are found one by one."""
_TRIES_PER_SYMBOL = 12
_EMPTY = 4
"""Symbols that are tried at 0."""
_SUMS = 4
"""Symbols that may be the sum of two others that are tried as such."""
_DEARER = 6
"""How many times the elements of the base a run may have."""
_CHEAP = 1 << 22
"""Elements that a run may have whatever the base has."""
_LONG = 257
"""A size at which what needs a few elements in a row, or one that is equal to another, comes up by chance."""
_SHORT = 64
"""The largest size that a symbol was taken at for it to be tried so long."""
_FEW = 1 << 20
"""Elements of what goes into such a run, and of what comes out of it."""


class Resizer:
    """Finds runs at other sizes than those of `base`; `notes` says what goes together, `untried` what was too large."""

    def __init__(self, tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> None:
        self._tries, self._base, self._chosen, self._manner = tries, base.feed.sizes, chosen, manner
        self._plan = tries.plan
        self._symbols = [symbol for symbol in self._base if symbol not in self._plan.known]
        self._numbers = proposals.numbers(self._plan.generator)
        self._taken: dict[str, set[int]] = {symbol: set() for symbol in self._symbols}
        self._most = max(_DEARER * self._elements(self._base), _CHEAP)
        self._given = sum(int(np.size(value)) for value in base.outputs.values() if isinstance(value, np.ndarray))
        self.notes: list[str] = []
        self.untried: list[str] = []
        self.tied: list[list[str]] = []
        """Symbols that have to have equal sizes, or of which one is the sum of the others."""
        self._equal: list[list[str]] = []

    def runs(self) -> Iterator[Run]:
        """Together; then each symbol that was not taken so; then those that do not move alone, together; then 0."""
        beyond = {symbol: self._beyond(symbol) for symbol in self._symbols}
        together = 0
        rounds = proposals.rounds(self._base, beyond)
        for number, sizes in enumerate(rounds):
            run = self._try(self._affordable(sizes, beyond), small=number == 1)
            if run is not None:
                together += 1
                yield run
        for run in self._by_sums(rounds) if together < len(rounds) else ():
            together += 1
            yield run
        for symbol in self._symbols:
            if len(self._taken[symbol]) < _PER_SYMBOL or not together:
                yield from self._resized([symbol], beyond)
            yield from self._limit(symbol, beyond[symbol])
            yield from self._at_limit(symbol)
        yield from self._stuck(beyond)
        yield from self._long()
        moved = {symbol: max(taken) for symbol, taken in self._taken.items() if taken}
        if not together and len(moved) > 1:
            run = self._try({**self._base, **moved})
            yield from [run] if run is not None else []
        alone = [[symbol] for symbol in self._symbols if not any(symbol in group for group in self._equal)]
        for symbols in [*self._equal, *alone][:_EMPTY]:
            run = self._try({**self._base, **dict.fromkeys(symbols, 0)}, counts=False)
            yield from [run] if run is not None else []

    def _long(self) -> Iterator[Run]:
        """A run with everything long that was short so far; else with one symbol after the other, the first that is
        taken."""
        short = [one for one in self._symbols if max(self._taken[one] | {self._base[one]}) < _SHORT]
        for symbols in [short, *([one] for one in short if len(short) > 1)]:
            asked = {**self._base, **dict.fromkeys(symbols, _LONG)}
            times = math.prod(_LONG / max(self._base[one], 1) for one in symbols)
            is_cheap = self._elements(asked) <= _FEW and times * self._given <= _FEW  # what it gives grows as well
            run = self._try(asked) if symbols and is_cheap else None
            if run is not None:
                yield run
                return

    def _by_sums(self, rounds: list[dict[str, int]]) -> Iterator[Run]:
        """The rounds once more, a symbol that is the sum of two others in the base being their sum again: a mask is as
        long as the past and what is new together."""
        base = self._base
        triples = (
            (total, a, b)
            for a, b in itertools.combinations(self._symbols, 2)
            for total in self._symbols
            if total not in (a, b) and base[total] == base[a] + base[b]
        )
        for total, a, b in itertools.islice(triples, _SUMS):
            tries = (self._try({**sizes, total: sizes[a] + sizes[b]}) for sizes in rounds)
            found = [run for run in tries if run is not None]
            yield from found
            if found:
                self.tied.append([a, b, total])
                self.notes.append(f"dimension {total} is taken as the sum of {a} and {b} only")
                return

    def _limit(self, symbol: str, beyond: int) -> Iterator[Run]:
        """A run beyond the numbers of the graph, where none was taken yet; else one at the largest that is taken."""
        now, taken = self._base[symbol], self._taken[symbol]
        numbers = [number for number in self._numbers.get(symbol, ()) if now < number < beyond]
        if not numbers or any(size > max(numbers) for size in taken):
            return
        for size in (beyond, max(numbers) + 1, max(numbers), max(numbers) - 1):
            run = self._try({**self._base, symbol: size}) if size not in taken else None
            if run is not None:
                yield run
                return

    def _at_limit(self, symbol: str) -> Iterator[Run]:
        """A run at the largest number itself: whether a limit is still inside shows there alone."""
        numbers = [number for number in self._numbers.get(symbol, ()) if number not in self._taken[symbol]]
        asked = {**self._base, symbol: max(numbers, default=0)}
        if not numbers or asked == dict(self._base) or self._elements(asked) > self._most:
            return
        run = self._try(asked)
        yield from [run] if run is not None else []

    def _stuck(self, beyond: Mapping[str, int]) -> Iterator[Run]:
        """Symbols of one size that do not move alone."""
        stuck: dict[int, list[str]] = {}
        for symbol in self._symbols:
            if not self._taken[symbol]:
                stuck.setdefault(self._base[symbol], []).append(symbol)
        for size, symbols in stuck.items():
            runs = list(self._resized(symbols, beyond)) if len(symbols) > 1 else []
            yield from runs
            if runs:
                self.tied.append(symbols)
                self._equal.append(symbols)
                self.notes.append(f"dimensions {', '.join(symbols)} go together: the reference takes equal sizes only")
            else:
                self.notes.append(
                    f"dimension {', '.join(symbols)} was checked at size {size} only: "
                    "the reference took no other that was tried"
                )

    def _resized(self, symbols: list[str], beyond: Mapping[str, int]) -> Iterator[Run]:
        """Runs with `symbols` at other sizes, until each has a few."""
        ladder = proposals.others(symbols[0], self._base, self._plan.generator.signature)
        numbers = sorted(self._numbers.get(symbols[0], ()), reverse=True)
        now, far = self._base[symbols[0]], beyond[symbols[0]]
        sizes = dict.fromkeys((far, *numbers[:2], -(-far // now) * now, *ladder))
        for size in itertools.islice(sizes, _TRIES_PER_SYMBOL):
            if size in self._taken[symbols[0]] or size == self._base[symbols[0]]:
                continue
            asked = {**self._base, **dict.fromkeys(symbols, size)}
            run = self._try(asked) if self._elements(asked) <= self._most else None
            if run is not None:
                yield run
            if len(self._taken[symbols[0]]) >= _PER_SYMBOL:
                return

    def _beyond(self, symbol: str) -> int:
        """The size beyond the largest number of the graph that can be afforded, with all else at 1 if need be."""
        now, dear = self._base[symbol], 0
        found = proposals.past(now, now)
        for number in sorted(self._numbers.get(symbol, ()), reverse=True):
            size = proposals.past(number, now)
            alone = {**dict.fromkeys(self._symbols, 1), **self._plan.known, symbol: size}
            if number < now or self._elements({**self._base, **alone}) <= self._most:
                found = size if number >= now else found
                break
            dear = number  # the smallest of those, in the end
        if dear:
            self.untried.append(f"{symbol} was not tried above {dear}, a number in the graph: it would be too large")
        return found

    def _affordable(self, sizes: dict[str, int], beyond: Mapping[str, int]) -> dict[str, int]:
        """The sizes, with 1 in the place of those that are not beyond a number where the run would be too dear."""
        if self._elements(sizes) <= self._most:
            return sizes
        return {symbol: size if size == beyond.get(symbol) else min(size, 1) if symbol in beyond else size
                for symbol, size in sizes.items()}  # fmt: skip

    def _elements(self, sizes: Mapping[str, int]) -> int:
        generator = self._plan.generator
        return generator.numbers.elements(generator.known(dict(sizes)))

    def _try(self, sizes: Mapping[str, int], *, small: bool = False, counts: bool = True) -> Run | None:
        """A run at these sizes; one of them with values so small that an epsilon shows."""
        manner = Manner("small", self._manner.most, self._manner.fill) if small else self._manner
        if small and self._manner.spread != "normal":
            manner = self._manner
        run = self._tries.run(sizes, self._plan.seed + 2, self._chosen, manner)
        if run is not None and counts:
            for symbol in self._symbols:
                self._taken[symbol] |= {sizes[symbol]} - {self._base[symbol]}
        return run
