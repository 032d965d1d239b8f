"""Runs the reference with each count at several numbers, and with all counts large together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.words import first_few
from onnxsmith.graph.files.load import load
from onnxsmith.verification.input_search import MOST_ELEMENTS, Run, Tries
from onnxsmith.verification.inputs.counts import SMALL, numbers
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.generate import Generator

_INPUTS = 8
"""Limits the inputs that are tried as counts. A choice, like the limits below: they bound the number of runs."""
_SECONDS = 5.0
"""Limits the seconds of a run with a larger count, as estimated from the run before it."""
_TOGETHER = 64
"""Limits the number of all counts in one run, because a loop in a loop runs as often as their product."""
_FEW = 1 << 20
"""Limits the elements of the tensors in a run with large counts and large sizes."""


class CountRuns:
    """Finds runs with counts at other numbers. A number that the reference refuses does not count as a refusal, because
    a graph promises no count. `untried` are clauses for a headline about counts that were limited."""

    def __init__(self, tries: Tries, base: Run, runs: Sequence[Run], chosen: Mapping[str, int], manner: Manner) -> None:
        self._tries, self._chosen, self._manner = tries, chosen, manner
        self._generator = tries.plan.generator
        self._small, self._usual, self._large = self._sizes(base, runs)
        self.untried: list[str] = []
        self._seen = [base, *runs]
        self._refused: dict[str, list[int]] = {}

    def _sizes(self, base: Run, runs: Sequence[Run]) -> tuple[Mapping[str, int], ...]:
        """Returns the smallest sizes of the runs, the base's, and the largest that are cheap."""
        held = [run.feed.sizes for run in runs if not run.is_empty and run.generated] or [base.feed.sizes]

        def least(sizes: Mapping[str, int]) -> int:
            return min(sizes.values(), default=0)

        cheap = [
            sizes for sizes in held if self._generator.numbers.elements(self._generator.known(dict(sizes))) <= _FEW
        ]
        return min(held, key=lambda one: sum(one.values())), base.feed.sizes, max(cheap or held[:1], key=least)

    def runs(self) -> Iterator[Run]:
        """Yields the runs: each count at each of its numbers, and then all counts at each larger number together."""
        counted = self._generator.counted()
        names = list(counted)[:_INPUTS]
        if len(counted) > _INPUTS:
            self.untried.append(f"{first_few(list(counted)[_INPUTS:], 2)} was tried with only a few values")
        for name in names:
            yield from self._of(name, counted[name])
        large = sorted({value for name in names for value in counted[name] if SMALL < value <= _TOGETHER})
        for value in large if len(names) > 1 else ():
            run = self._try(self._large, {name: value for name in names if value in counted[name]})
            yield from [run] if run is not None else []
        self.untried += self._limited()

    def _of(self, name: str, values: Sequence[int]) -> Iterator[Run]:
        """Yields runs at the base's sizes for small counts, and at large sizes for larger ones, so that neither limits
        the other. The last count is tried at small sizes too."""
        taken: list[int] = []
        before: tuple[int, float, int] | None = None
        for value in values:
            if before is not None and _is_dear(value, *before):
                self.untried.append(f"{name} was not tried above {before[0]}: {value} would take too long")
                break
            wanted = (self._usual, self._large) if value <= SMALL else (self._large, self._usual)
            for sizes in wanted:
                begin = time.monotonic()
                run = self._try(sizes, {name: value})
                if run is not None:
                    break
            if run is None:
                self._refused.setdefault(name, []).append(value)
                continue
            taken.append(value)
            before = (max(value, 1), time.monotonic() - begin, _elements(run.outputs))
            self._seen.append(run)
            yield run
        if taken and taken[-1] > SMALL and self._small not in (self._usual, self._large):
            run = self._try(self._small, {name: taken[-1]})
            yield from [run] if run is not None else []

    def _limited(self) -> list[str]:
        """Returns a clause for each count of which the reference took small numbers only."""
        said, refused = [], self._refused
        for name, seen in counts_tried(self._generator, self._seen).items():
            if len(seen) == 1 and refused.get(name):
                said.append(f"{name} was tried at {seen[0]} only")
            elif seen[-1] <= SMALL and any(value > seen[-1] for value in refused.get(name, ())):
                said.append(f"{name} was refused above {seen[-1]}")
        return said

    def _try(self, sizes: Mapping[str, int], counts: Mapping[str, int]) -> Run | None:
        """Returns a run with these counts; None if the graph or the reference refuses them."""
        known = self._generator.known(dict(sizes))
        if not all(self._generator.counts[name].fits(value, known) for name, value in counts.items()):
            return None
        chosen = {**self._chosen, **counts}
        run = self._tries.quietly(sizes, self._tries.plan.seed, chosen, self._manner)
        empty = next((name for name, value in counts.items() if value == 0), "")
        return None if run is None else replace(run, feed=replace(run.feed, zero=empty))


def counts_tried(generator: Generator, runs: Iterable[Run]) -> dict[str, tuple[int, ...]]:
    """Returns the values of each single count in the runs, in ascending order."""
    found: dict[str, set[int]] = {name: set() for name, count in generator.counts.items() if count.single}
    for run in runs:
        for name in found.keys() & run.feed.values.keys():
            found[name].update(int(number) for number in np.ravel(run.feed.values[name]) if np.isfinite(number))
    return {name: tuple(sorted(values)) for name, values in found.items() if values}


def with_counts_of(generator: Generator, other: Path | ir.Model) -> Generator:
    """Returns the generator with the numbers that another model compares with counts. Reads the model only if there are
    counts."""
    if not generator.counts and not generator.numbers.loops:
        return generator
    return replace(generator, numbers=generator.numbers.with_counted(numbers(load(other))))


def _is_dear(value: int, last: int, seconds: float, elements: int) -> bool:
    """Whether a run would take too long, or its outputs would be too large."""
    times = value / last
    return times * seconds > _SECONDS or times * elements > MOST_ELEMENTS


def _elements(outputs: Mapping[str, Any]) -> int:
    return sum(int(np.size(value)) for value in outputs.values() if isinstance(value, np.ndarray))
