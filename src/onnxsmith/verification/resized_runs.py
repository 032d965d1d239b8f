"""Runs the reference at other sizes: several symbols at once, or one by one if the reference refuses them together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from onnxsmith.verification.input_search import Run, Tries
from onnxsmith.verification.inputs import size_proposals as proposals
from onnxsmith.verification.inputs.draw_description import Manner

_PER_SYMBOL = 2
"""Ends the search for a symbol after this many accepted sizes, without the base's. A choice."""
_TRIES_PER_SYMBOL = 12
"""Limits the sizes of one symbol that are tried. A choice, like each limit below: they bound the number of runs."""
_EMPTY = 4
"""Limits the symbols that are tried at size 0."""
_SUMS = 4
"""Limits the triples of symbols that are tried with one symbol as the sum of the two others."""
_DEARER = 6
"""Limits a run, in multiples of the base's elements."""
_CHEAP = 1 << 22
"""Counts the elements that any run may have, even if the base is small."""
_LONG = 257
"""Holds a size long enough for chance events, such as equal elements or a run of them. It is a prime above 256."""
_SHORT = 64
"""Holds the largest accepted size of a symbol for which `_LONG` is still tried."""
_FEW = 1 << 20
"""Limits the elements of the inputs, and of the outputs, of a `_LONG` run."""
_LEVELS = (257, 131, 67)
"""Lists the least sizes of the symbols in a run with all symbols large: primes above 256, 128 and 64."""
_MANY = 1 << 22
"""Limits the elements of the outputs, and of all tensors, in a run with all symbols large."""
_ROUND = 64
"""Divides the sizes of a run with all symbols large, if the reference refuses the primes. A choice."""


class Resizer:
    """Finds runs at other sizes than `base`. `notes` names symbols that depend on each other, `untried` sizes that were
    too large."""

    def __init__(self, tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> None:
        self._tries, self._base, self._chosen, self._manner = tries, base.feed.sizes, chosen, manner
        self._plan = tries.plan
        self._limits = self._plan.limits
        self._symbols = [symbol for symbol in self._base if symbol not in self._plan.known]
        self._numbers = proposals.numbers(self._plan.generator)
        self._taken: dict[str, set[int]] = {symbol: set() for symbol in self._symbols}
        self._most = max(_DEARER * self._elements(self._base), _CHEAP)
        self._given = sum(int(np.size(value)) for value in base.outputs.values() if isinstance(value, np.ndarray))
        self.notes: list[str] = []
        self.untried: list[str] = []
        self.tied: list[list[str]] = []
        """Lists groups of symbols that need equal sizes, or in which one symbol is the sum of the others."""
        self._equal: list[list[str]] = []
        self._accepted: list[Mapping[str, int]] = [self._base]

    def runs(self) -> Iterator[Run]:
        """Yields the runs in this order: with all symbols resized; with each symbol that failed together with others;
        with symbols that change only together; large runs; runs with a size of 0."""
        beyond = {symbol: self._beyond(symbol) for symbol in self._symbols}
        together = 0
        rounds = proposals.rounds(self._base, beyond)
        if self._limits:
            fitted = [one for one in map(self._limits.fitted, rounds) if one is not None and one != self._base]
            rounds = [one for number, one in enumerate(fitted) if one not in fitted[:number]]
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
            yield from self._at_ends(symbol)
        yield from self._stuck(beyond)
        yield from self._long()
        moved = {symbol: max(taken) for symbol, taken in self._taken.items() if taken}
        if not together and len(moved) > 1:
            run = self._try({**self._base, **moved})
            yield from [run] if run is not None else []
        yield from self._large(beyond)
        alone = [[symbol] for symbol in self._symbols if not any(symbol in group for group in self._equal)]
        for symbols in [*self._equal, *alone][:_EMPTY]:
            run = self._try({**self._base, **dict.fromkeys(symbols, 0)}, counts=False)
            yield from [run] if run is not None else []
        for sizes in itertools.islice(self._limits.emptying(self._base), _EMPTY):
            run = self._try(sizes, counts=False)
            yield from [run] if run is not None else []

    def _long(self) -> Iterator[Run]:
        """Yields a run with `_LONG` for all symbols that were short so far. If the reference refuses it, yields a run
        with the first symbol that is accepted alone."""
        short = [one for one in self._symbols if max(self._taken[one] | {self._base[one]}) < _SHORT]
        for symbols in [short, *([one] for one in short if len(short) > 1)]:
            asked = {**self._base, **dict.fromkeys(symbols, _LONG)}
            times = math.prod(_LONG / max(self._base[one], 1) for one in symbols)
            is_cheap = self._elements(asked) <= _FEW and times * self._given <= _FEW  # the outputs grow too
            run = self._try(asked) if symbols and is_cheap else None
            if run is not None:
                yield run
                return

    def _large(self, beyond: Mapping[str, int]) -> Iterator[Run]:
        """Yields a run with all symbols large together, and beyond the numbers in the graph. In a run with only one
        large symbol, a condition such as `min(height, width) > 64` always has the same answer. Batches stay unchanged
        if there are two other symbols."""
        batches = proposals.batches(self._plan.generator.signature)
        others = [symbol for symbol in self._symbols if symbol not in batches]
        symbols = others if len(others) > 1 else self._symbols
        if len(symbols) < 2:
            return
        furthest = max(beyond[symbol] for symbol in symbols)  # a number may limit a symbol only if others are large
        for level in dict.fromkeys((max(furthest, _LONG), *_LEVELS)):
            least = {symbol: max(level, beyond[symbol]) for symbol in symbols}
            if any(all(sizes[one] >= least[one] for one in symbols) for sizes in self._accepted):
                return
            for asked in (least, {symbol: -(-size // _ROUND) * _ROUND for symbol, size in least.items()}):
                sizes = self._summed({**self._base, **asked})
                run = self._try(sizes) if self._is_affordable(sizes) else None
                if run is not None:
                    yield run
                    return

    def _is_affordable(self, sizes: Mapping[str, int]) -> bool:
        """Whether a run at these sizes has few elements: in its tensors of known shapes, and in its outputs."""
        times = math.prod(sizes[one] / max(self._base[one], 1) for one in self._symbols)
        return self._elements(sizes) <= max(self._most, _MANY) and times * self._given <= _MANY

    def _summed(self, sizes: dict[str, int]) -> dict[str, int]:
        """Returns the sizes, changed to fit the known dependences: each sum of two symbols is their sum, and all
        symbols of a group of equal symbols have the group's largest size."""
        for group in self.tied:
            if group in self._equal:
                sizes |= dict.fromkeys(group, max(sizes[one] for one in group))
            else:
                *parts, total = group
                sizes[total] = sum(sizes[one] for one in parts)
        return sizes

    def _by_sums(self, rounds: list[dict[str, int]]) -> Iterator[Run]:
        """Repeats the rounds with one symbol kept as the sum of two others, if it is their sum in the base. For
        example, the length of a mask is the length of the past plus the new tokens."""
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
                self.notes.append(f"dimension {total} was always chosen as the sum of {a} and {b}")
                return

    def _limit(self, symbol: str, beyond: int) -> Iterator[Run]:
        """Yields a run beyond the numbers in the graph, if there was none yet. If the reference refuses this run,
        yields a run at the largest accepted size."""
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
        """Yields a run at the largest number itself, because no other size shows an error by one in a comparison with
        this number."""
        numbers = [number for number in self._numbers.get(symbol, ()) if number not in self._taken[symbol]]
        asked = {**self._base, symbol: max(numbers, default=0)}
        if not numbers or asked == dict(self._base) or self._elements(asked) > self._most:
            return
        run = self._try(asked)
        yield from [run] if run is not None else []

    def _at_ends(self, symbol: str) -> Iterator[Run]:
        """Yields runs at the ends of the range that the user, the file or a relation gives the symbol."""
        for size in self._limits.ends(symbol):
            if size in self._taken[symbol] or size == self._base[symbol]:
                continue
            asked = {**self._base, symbol: size}
            if self._elements(asked) > self._most:
                self.untried.append(
                    f"{symbol} was not tried at {size}, the end of its range: the run would be too large"
                )
                continue
            run = self._try(asked)
            yield from [run] if run is not None else []

    def _stuck(self, beyond: Mapping[str, int]) -> Iterator[Run]:
        """Yields runs that change several symbols of the same size together, if the reference refuses to change one
        alone."""
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
                self.notes.append(
                    f"dimensions {', '.join(symbols)} are equal in all runs: the reference refuses different sizes"
                )
            else:
                self.notes.append(
                    f"dimension {', '.join(symbols)} was checked at size {size} only: "
                    "the reference refused all others that were tried"
                )

    def _resized(self, symbols: list[str], beyond: Mapping[str, int]) -> Iterator[Run]:
        """Yields runs with `symbols` at other sizes, until each symbol has `_PER_SYMBOL` accepted sizes."""
        ladder = proposals.others(symbols[0], self._base, self._plan.generator.signature)
        numbers = sorted(self._numbers.get(symbols[0], ()), reverse=True)
        now, far = self._base[symbols[0]], beyond[symbols[0]]
        wanted = (far, *numbers[:2], -(-far // max(now, 1)) * now, *ladder)
        sizes = dict.fromkeys(self._limits.ladder(symbols[0], wanted))
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
        """Returns the affordable size beyond the largest number in the graph. If need be, every other symbol is at
        1."""
        now, dear = self._base[symbol], 0
        found = proposals.past(now, now)
        for number in sorted(self._numbers.get(symbol, ()), reverse=True):
            size = proposals.past(number, now)
            alone = {**dict.fromkeys(self._symbols, 1), **self._plan.known, symbol: size}
            if number < now or self._elements({**self._base, **alone}) <= self._most:
                found = size if number >= now else found
                break
            dear = number  # numbers descend: at the end this is the smallest one that was too large
        if dear:
            self.untried.append(
                f"{symbol} was not tried above {dear}, which is a number in the graph: the run would be too large"
            )
        return found

    def _affordable(self, sizes: dict[str, int], beyond: Mapping[str, int]) -> dict[str, int]:
        """Returns the sizes. If the run would be too large, sets every symbol that is not beyond a number to 1."""
        if self._elements(sizes) <= self._most:
            return sizes
        return {symbol: size if size == beyond.get(symbol) else min(size, 1) if symbol in beyond else size
                for symbol, size in sizes.items()}  # fmt: skip

    def _elements(self, sizes: Mapping[str, int]) -> int:
        generator = self._plan.generator
        return generator.numbers.elements(generator.known(dict(sizes)))

    def _try(self, sizes: Mapping[str, int], *, small: bool = False, counts: bool = True) -> Run | None:
        """Returns a run at these sizes. With `small`, the values are so small that an epsilon in the graph has an
        effect."""
        manner = Manner("small", self._manner.most, self._manner.fill) if small else self._manner
        if small and self._manner.spread != "normal":
            manner = self._manner
        fitted = self._limits.fitted(sizes) if counts else dict(sizes)
        if fitted is None or (fitted != sizes and fitted in self._accepted):
            return None
        sizes = fitted
        run = self._tries.run(sizes, self._plan.seed + 2, self._chosen, manner)
        if run is not None and counts:
            for symbol in self._symbols:
                self._taken[symbol] |= {sizes[symbol]} - {self._base[symbol]}
            self._accepted.append(sizes)
        return run
