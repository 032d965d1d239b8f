"""Finds inputs that the reference takes: several sizes for every symbolic dimension, every value the graph asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import difference, is_float
from onnxsmith.feeds import sizes as proposals
from onnxsmith.feeds.generate import SPREADS, Feed, Generator
from onnxsmith.metrics.base import widen
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.runtimes.base import Outputs, Session

_SIZES_PER_SYMBOL = 2
"""Sizes tried for each symbol beside the base's."""
_TRIES_PER_SYMBOL = 12
_FATAL = {"runtime/died", "runtime/timeout"}
_MOST_CRASHES = 12
"""Inputs that may crash the reference before it is given up: a size too small for a window can divide by zero."""


@dataclass
class Plan:
    """What to feed: `given` inputs first, then generated ones.

    `known` sizes stay fixed; `start` is a set of sizes that is known to work; without `generate` only `given` is fed.
    With `random` the reference may draw random numbers: what it draws is then held by dtype and shape only.
    """

    generator: Generator
    given: tuple[Feed, ...] = ()
    known: Mapping[str, int] = field(default_factory=dict)
    start: Mapping[str, int] | None = None
    generate: bool = True
    seed: int = 0
    random: bool = False


@dataclass
class Run:
    """One feed and what the reference answered to it."""

    feed: Feed
    outputs: Outputs


def answer(session: Session, feed: Feed) -> tuple[Outputs | None, Problem | None]:
    """The outputs, or why the session refuses the feed. Raises when the session is gone for good."""
    try:
        return session.run(feed.values), None
    except OnnxsmithError as error:
        if error.problem.id in _FATAL:
            raise OnnxsmithError(replace(error.problem, where=f"{error.problem.where}; input {feed.label}")) from error
        return None, error.problem


def tried(runs: Iterable[Run]) -> dict[str, tuple[int, ...]]:
    """The sizes at which each symbol was fed, in ascending order."""
    found_sizes: dict[str, list[int]] = {}
    for run in runs:
        for symbol, size in run.feed.sizes.items():
            found_sizes.setdefault(symbol, []).append(size)
    return {symbol: tuple(sorted(set(found))) for symbol, found in found_sizes.items()}


class Explorer:
    """Finds inputs that the reference takes."""

    def __init__(self, session: Session, plan: Plan, roundings: Mapping[str, Rounding]) -> None:
        self._session = session
        self._plan = plan
        self._roundings = roundings
        self.refused = 0
        self.untried: tuple[str, ...] = ()
        """Clauses for a headline: axes that stayed at one size, sizes that the reference does not take."""
        self.drawn: set[str] = set()
        """Outputs that differ between two runs on the same input, once `repeated` has looked."""
        self._repeated = False
        self._crashed: list[str] = []
        self._notes: list[str] = []
        self._last: Problem | None = None
        self._spread = SPREADS[0]

    @property
    def notes(self) -> list[str]:
        """What a reader of the comparison has to know, so far."""
        crashes = f"{len(self._crashed)} inputs that crash the reference were left out, the first: "
        return [*self._notes, *(crashes + text for text in self._crashed[:1])]

    def runs(self) -> Iterator[Run]:
        given = [run for feed in self._plan.given if (run := self._strictly(feed))]
        yield from given
        base = self._base() if self._plan.generate else None
        if base is None:
            if self._plan.generate and not given:
                raise self._nothing_taken()
            if self._plan.generate:
                self._notes.append("only the given inputs were compared: no generated ones were taken by the reference")
            return
        yield base
        yield from self._other_values(base)
        yield from self._other_choices(base)
        yield from self._other_sizes(base)

    def repeated(self, run: Run) -> Set[str]:
        """`drawn`, found by running the reference on one input again, the first that this is asked for.

        Raises:
            OnnxsmithError: `verify/nondeterministic` when an output differs and the plan is not `random`.
        """
        if not self._repeated:
            self._repeated = True
            again = self._session.run(run.feed.values)
            for name, value in run.outputs.items():
                rounding = self._roundings.get(name)
                if difference(value, again[name], *(rounding.bounds if rounding else (0.0,))).reason:
                    self.drawn.add(name)
            if self.drawn and not self._plan.random:
                raise _not_repeatable(min(self.drawn))
        return self.drawn

    def _strictly(self, feed: Feed) -> Run:
        return Run(feed, self._session.run(feed.values))

    def _try(
        self, sizes: Mapping[str, int], seed: int, chosen: Mapping[str, int], spread: str | None = None
    ) -> Run | None:
        feed = self._plan.generator.feed(dict(sizes), seed=seed, spread=spread or self._spread, chosen=chosen)
        try:
            outputs, refusal = answer(self._session, feed)
        except OnnxsmithError as error:
            if error.problem.id != "runtime/died" or len(self._crashed) == _MOST_CRASHES:
                raise
            self._crashed.append(f"{error.problem.what} on input {feed.label}")
            outputs, refusal = None, error.problem
        if outputs is None:
            self.refused += 1
            self._last = refusal
            return None
        return Run(feed, outputs)

    def _base(self) -> Run | None:
        choices = self._plan.generator.choices()
        first = {name: values[0] for name, values in choices.items()}
        fallback: Run | None = None
        for sizes in self._bases():
            for spread in SPREADS:
                run = self._try(sizes, self._plan.seed, first, spread)
                if run is None:
                    break
                if _says_something(run.outputs):
                    self._spread, self._chosen = spread, first
                    return run
                fallback = fallback or run
        self._chosen = first
        return fallback

    def _bases(self) -> Iterator[Mapping[str, int]]:
        if self._plan.start is not None:
            yield {**self._plan.start, **self._plan.known}
        yield from proposals.bases(self._plan.generator.signature, self._plan.known)

    def _other_values(self, base: Run) -> Iterator[Run]:
        if self._plan.generator.signature.required():
            run = self._try(base.feed.sizes, self._plan.seed + 1, self._chosen)
            if run is not None:
                yield run

    def _other_choices(self, base: Run) -> Iterator[Run]:
        for name, values in self._plan.generator.choices().items():
            for value in values[1:]:
                chosen = {**self._chosen, name: value}
                here = [base.feed.sizes, *self._bases()]
                found = next((run for sizes in here if (run := self._try(sizes, self._plan.seed, chosen))), None)
                if found is None:
                    self._notes.append(
                        f"{name} = {value}, which the graph asks for, was taken at no size that was tried"
                    )
                else:
                    yield found

    def _other_sizes(self, base: Run) -> Iterator[Run]:
        """Each symbol by itself; those that do not move alone, together with the others of their size; then all."""
        moved: dict[str, int] = {}
        stuck: dict[int, list[str]] = {}
        for symbol, size in base.feed.sizes.items():
            if symbol in self._plan.known:
                continue
            runs = list(self._resized(base, [symbol]))
            yield from runs
            if runs:
                moved[symbol] = runs[-1].feed.sizes[symbol]
            else:
                stuck.setdefault(size, []).append(symbol)
        for size, symbols in stuck.items():
            runs = list(self._resized(base, symbols)) if len(symbols) > 1 else []
            yield from runs
            if runs:
                self._notes.append(f"dimensions {', '.join(symbols)} go together: the reference takes equal sizes only")
                moved.update(dict.fromkeys(symbols, runs[-1].feed.sizes[symbols[0]]))
            else:
                self._notes.append(
                    f"dimension {', '.join(symbols)} was checked at size {size} only: "
                    "the reference took no other that was tried"
                )
        if len(moved) > 1:
            run = self._try({**base.feed.sizes, **moved}, self._plan.seed + 3, self._chosen)
            if run is not None:
                yield run

    def _resized(self, base: Run, symbols: list[str]) -> Iterator[Run]:
        """Runs with `symbols` at other sizes, at most `_SIZES_PER_SYMBOL` of them."""
        ladder = proposals.others(symbols[0], base.feed.sizes, self._plan.generator.signature)
        found = 0
        for size in itertools.islice(ladder, _TRIES_PER_SYMBOL):
            run = self._try({**base.feed.sizes, **dict.fromkeys(symbols, size)}, self._plan.seed + 2, self._chosen)
            if run is not None:
                yield run
                found += 1
            if found == _SIZES_PER_SYMBOL:
                return

    def _nothing_taken(self) -> OnnxsmithError:
        last = self._last
        if last is not None and last.id == "runtime/memory":
            return OnnxsmithError(last)
        return problem(
            "verify/no-valid-input",
            f"the reference took none of {self.refused} generated inputs",
            why=f"the last refusal: {last.what} {last.why}" if last else "",
            fix="give one that works: --input x=float32[1,3,224,224] or --input inputs.npz; or sizes: --dim height=64",
        )


def _not_repeatable(name: str) -> OnnxsmithError:
    return problem(
        "verify/nondeterministic",
        f"output {name!r} differs between two runs on the same input",
        why="the model draws random numbers, or reads memory that nobody wrote",
        fix="make it repeatable (a fixed seed input, eval mode), or go on unverified with --no-verify",
    )


def _says_something(outputs: Outputs) -> bool:
    """Whether at least one output has a finite element."""
    return any(_has_finite(value) for value in outputs.values())


def _has_finite(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_finite(item) for item in value)
    if value is None or np.asarray(value).size == 0:
        return False
    array = np.asarray(value)
    return not is_float(array) or bool(np.isfinite(widen(array)).any())
