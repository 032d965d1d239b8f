"""Searches for inputs that the reference accepts and answers with numbers, and records what it refuses.

The search tries, in this order: usual sizes and values; sizes and narrower integers that a refusal suggests; the other
usual sizes; integers of all zeros and all ones. If the answer is empty or NaN, other values are tried at the same
sizes.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.dims import symbols as symbols_of
from onnxsmith.graph.structure.dim_ranges import Range, Size, read
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.inputs import size_proposals as proposals
from onnxsmith.verification.inputs.draw_description import SPREADS, Manner
from onnxsmith.verification.inputs.generate import Feed, Generator, refuse_negative
from onnxsmith.verification.inputs.size_limits import SizeLimits
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.runtime_choice import FAILS, LACKS, FailsError, LacksError
from onnxsmith.verification.value_comparison import is_float

_FATAL = {"runtime/died", "runtime/timeout"}
_MOST_CRASHES = 12
"""Limits the crashes after which the reference is no longer run. A choice: a size too small for a window can divide by
zero."""
_FEW_CRASHES = 3
"""Limits the crashes after which smaller inputs are skipped. An input is smaller if none of its sizes is above the
sizes of a crash. A choice."""
_MOST_LATE = 2
"""Limits the inputs on which the reference may exceed its time limit, after it has answered another input. A choice."""
_NAMED = 3
"""Limits the refused sizes that a report names. A choice: one line."""
MOST_ELEMENTS = 1 << 24
"""Limits the elements of one generated input. A choice: 64 MiB of float32, twice that while the input is drawn."""


@dataclass
class Plan:
    """Describes the inputs to run: first the `given` inputs, then generated inputs.

    `answered` are runs of the same reference in an earlier comparison. They count as given, and are not made again.
    `known` sizes stay fixed. A range among them moves to `ranges`. `limits` has all that the user, the file and the
    relations between axes say about sizes. `start` are sizes that are known to work; without `generate`, only `given`
    is fed. With `random` the reference may draw random numbers: only dtype and shape of drawn outputs are compared.
    `turned` are groups of sizes. Of each group, the first sizes that the reference accepts are used.

    Raises:
        OnnxsmithError: `input/seed`; `input/size-range` if no sizes fit.
    """

    generator: Generator
    given: tuple[Feed, ...] = ()
    known: Mapping[str, Any] = field(default_factory=dict)
    start: Mapping[str, int] | None = None
    generate: bool = True
    seed: int = 0
    random: bool = False
    turned: Sequence[Sequence[Mapping[str, int]]] = ()
    free: Free = field(default_factory=Free)
    """Says which outputs are free up to a sign or an order."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    answered: tuple[Run, ...] = ()
    limits: SizeLimits = field(init=False)

    def __post_init__(self) -> None:
        refuse_negative(self.seed)
        asked: dict[str, Size] = {**self.ranges, **read(self.known)}
        self.ranges = {name: size for name, size in asked.items() if isinstance(size, Range)}
        self.limits = SizeLimits(self.generator.signature, asked)
        self.known = self.limits.known


@dataclass
class Run:
    """Holds one feed and the reference's outputs for it. A run that is `left_out` does not count."""

    feed: Feed
    outputs: Outputs
    generated: bool = True
    left_out: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether an axis of the feed has size 0, or a count of the feed is 0."""
        return bool(self.feed.zero) or 0 in self.feed.sizes.values()


def answer(session: Session, feed: Feed) -> tuple[Outputs | None, Problem | None]:
    """Returns the outputs, or the reason why the session refuses the feed. Raises if the session has ended for good."""
    try:
        return session.run(feed.values), None
    except OnnxsmithError as error:
        if error.problem.id in _FATAL:
            raise OnnxsmithError(replace(error.problem, where=f"{error.problem.where}; input {feed.label}")) from error
        return None, error.problem


def tried(runs: Iterable[Run]) -> dict[str, tuple[int, ...]]:
    """Returns the sizes at which each symbol was tried, in ascending order."""
    found_sizes: dict[str, list[int]] = {}
    for run in runs:
        for symbol, size in run.feed.sizes.items():
            found_sizes.setdefault(symbol, []).append(size)
    return {symbol: tuple(sorted(set(found))) for symbol, found in found_sizes.items()}


class Tries:
    """Generates inputs and runs the reference on them."""

    def __init__(self, session: Session, plan: Plan) -> None:
        self.session, self.plan = session, plan
        self.refused = 0
        self.last: Problem | None = None
        """Holds the latest refusal."""
        self.outcomes: list[tuple[dict[str, int], bool]] = []
        """Lists the sizes that were tried, and whether the reference accepted them."""
        self.crashed: list[str] = []
        self._crashed_at: list[dict[str, int]] = []
        self.hopeless = 0
        """Counts the inputs that were skipped because one of their sizes, or a larger size, crashed the reference."""
        self.late: list[str] = []
        self.too_large = 0
        """Counts the inputs that were skipped because they would be too large."""

    def run(self, sizes: Mapping[str, int], seed: int, chosen: Mapping[str, int], manner: Manner) -> Run | None:
        """Returns a run on a generated input; None if the reference refuses the input, or if the input would be too
        large."""
        if not self.plan.limits.allows(sizes) or self._is_too_large(sizes):
            return None
        if self._is_hopeless(sizes):
            self.hopeless += 1
            return None
        try:
            feed = self.plan.generator.feed(dict(sizes), seed=seed, chosen=chosen, manner=manner)
        except OnnxsmithError as error:
            if error.problem.id != "feeds/unknown-size":
                raise
            self._refuse(sizes, error.problem)
            return None
        try:
            outputs, refusal = answer(self.session, feed)
        except OnnxsmithError as error:
            is_late = error.problem.id == "runtime/timeout"
            if not self._may_go_on(is_late=is_late):
                raise
            (self.late if is_late else self.crashed).append(f"{error.problem.what} on input {feed.label}")
            if not is_late:
                self._crashed_at.append(dict(sizes))
            outputs, refusal = None, error.problem
        if outputs is None:
            self._refuse(sizes, refusal)
            return None
        self.outcomes.append((dict(sizes), True))
        return Run(feed, outputs)

    def refused_sizes(self) -> tuple[str, ...]:
        """Returns the first sizes that the reference refused, as text."""
        refused = (sizes for sizes, is_taken in self.outcomes if not is_taken and sizes)
        texts = dict.fromkeys(", ".join(f"{name}={size}" for name, size in sizes.items()) for sizes in refused)
        return tuple(texts)[:_NAMED]

    def quietly(self, sizes: Mapping[str, int], seed: int, chosen: Mapping[str, int], manner: Manner) -> Run | None:
        """Returns the same as `run`, but a refusal is not counted."""
        refused, before = self.refused, len(self.outcomes)
        run = self.run(sizes, seed, chosen, manner)
        self.refused = refused
        del self.outcomes[before:]
        return run

    def _may_go_on(self, *, is_late: bool) -> bool:
        """Whether to continue after an input on which the reference crashed or exceeded its time limit."""
        if is_late:
            has_answered = bool(self.plan.given) or any(taken for _, taken in self.outcomes)
            return len(self.late) < _MOST_LATE and has_answered
        return len(self.crashed) < _MOST_CRASHES

    def _refuse(self, sizes: Mapping[str, int], refusal: Problem | None) -> None:
        self.refused += 1
        self.last = refusal
        self.outcomes.append((dict(sizes), False))

    def _is_hopeless(self, sizes: Mapping[str, int]) -> bool:
        """Whether the reference crashed at these sizes, or more than once at larger sizes."""
        if dict(sizes) in self._crashed_at:
            return True
        often = len(self._crashed_at) >= _FEW_CRASHES and bool(sizes)
        return often and any(all(size <= at.get(name, -1) for name, size in sizes.items()) for at in self._crashed_at)

    def _is_too_large(self, sizes: Mapping[str, int]) -> bool:
        """Whether an input would be too large, at sizes that the user did not ask for. An input that is too large does
        not count as a refusal."""
        asked = {**(self.plan.start or {}), **self.plan.known}
        if all(asked.get(symbol) == size for symbol, size in sizes.items()):
            return False
        shapes = [port.shape or () for port in self.plan.generator.signature.required()]
        counts = [math.prod(dims.evaluate(dim, sizes) or 1 for dim in shape) for shape in shapes]
        if max(counts, default=0) <= MOST_ELEMENTS:
            return False
        self.too_large += 1
        return True


def has_finite_output(outputs: Outputs) -> bool:
    """Whether at least one output has a finite element."""
    return any(_has_finite(value) for value in outputs.values())


def _has_finite(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_finite(item) for item in value)
    if value is None or np.asarray(value).size == 0:
        return False
    array = np.asarray(value)
    return not is_float(array) or bool(np.isfinite(widen(array)).any())


_FIRST = 3
"""Counts the usual sizes whose refusals are read first. A choice, like each limit below: they bound the number of
runs."""
_FROM_REFUSALS = 48
"""Limits the inputs that are tried because a refusal suggests their sizes."""
_PER_REFUSAL = 12
"""Limits the suggestions that are tried for one refusal."""
_LAST = 24
"""Limits the usual sizes that are tried again with integers of all zeros and ones."""
_CHOICES = 8
"""Limits the values of inputs with several choices that are tried one at a time."""
_COMBINATIONS = 16
"""Limits the combinations of values of several such inputs. A choice: four bools."""
_FILLS = (0, 1)
"""Lists integers that are valid indices and lengths almost everywhere."""
_SWEPT, _SWEPT_BESIDE, _SWEPT_SYMBOLS = 400, 64, 3
_SWEPT_SECONDS = 15.0
"""Limits the seconds of the last search: sizes up to 400 of three symbols, with the other symbols at 64."""


class Search:
    """Finds the base: an accepted input, and the `manner` and `chosen` values from which similar inputs are made."""

    def __init__(self, tries: Tries) -> None:
        self._tries = tries
        self._plan = tries.plan
        self.manner = Manner()
        self.chosen = {name: values[0] for name, values in tries.plan.generator.choices().items()}
        self._fallback: Run | None = None
        self._has_integers = any(
            port.dtype == "bool" or "int" in port.dtype for port in tries.plan.generator.signature.required()
        )

    def bases(self) -> Iterator[Mapping[str, int]]:
        """Yields usual sizes. Sizes that are known to work come first."""
        if self._plan.start is not None:
            first = self._plan.limits.fitted({**self._plan.start, **self._plan.known})
            yield from [first] if first is not None else []
        yield from proposals.bases(self._plan.generator.signature, self._plan.known, self._plan.limits)

    def base(self) -> Run | None:
        """Returns the first input that the reference answers with a number. If there is none, returns an input that the
        reference accepts, or None."""
        found = self._by_refusals()
        for sizes in self.bases() if found is None else ():
            found = self._at(sizes, [self.manner])
            if found is not None:
                break
        for sizes in itertools.islice(self.bases(), _LAST) if found is None and self._has_integers else ():
            found = self._at(sizes, [replace(self.manner, fill=fill) for fill in _FILLS])
            if found is not None:
                break
        return found or self._fallback or self._swept()

    def _swept(self) -> Run | None:
        """Tries each symbol at every size up to a few hundred, with the other symbols at a usual size, because the file
        may not name a number of channels or bands."""
        symbols = [symbol for symbol in symbols_of(self._plan.generator.signature) if symbol not in self._plan.known]
        likely = sorted(symbols, key=lambda symbol: symbol in proposals.batches(self._plan.generator.signature))
        end = time.monotonic() + _SWEPT_SECONDS
        for symbol in likely[:_SWEPT_SYMBOLS]:
            others = {**dict.fromkeys(symbols, _SWEPT_BESIDE), **self._plan.known}
            least = next(iter(self._plan.limits.ends(symbol)), 1)
            for size in range(least, least + _SWEPT - 1):
                sizes = self._plan.limits.fitted({**others, symbol: size})
                if sizes is None or sizes[symbol] != size:
                    break
                found = self._at(sizes, [self.manner])
                if found is not None or time.monotonic() > end:
                    return found or self._fallback
        return self._fallback

    def _by_refusals(self) -> Run | None:
        """Tries the likeliest sizes, then the sizes that their refusals suggest. The newest suggestion comes first."""
        queue: deque[Mapping[str, int]] = deque()
        seen: set[tuple[tuple[str, int], ...]] = set()
        for first in itertools.islice(self._likely(), _FIRST + 1):
            found, suggested = self._or_suggestions(first, seen, whatever=len(seen) < _FIRST)
            if found is not None:
                return found
            queue.extend(suggested)
        for _ in range(_FROM_REFUSALS):
            if not queue:
                break
            found, suggested = self._or_suggestions(queue.popleft(), seen)
            if found is not None:
                return found
            queue.extendleft(reversed(suggested))
        return None

    def _or_suggestions(
        self, sizes: Mapping[str, int], seen: set[tuple[tuple[str, int], ...]], *, whatever: bool = False
    ) -> tuple[Run | None, list[dict[str, int]]]:
        """Returns a run at these sizes, or else the sizes that its refusal suggests."""
        key = tuple(sorted(sizes.items()))
        if key in seen:
            return None, []
        seen.add(key)
        before = self._tries.refused
        found = self._at(sizes, [self.manner])
        refusal = self._tries.last if self._tries.refused > before else None
        if found is not None or refusal is None or self._fallback is not None:
            return found, []
        found = self._with_less(sizes, refusal, whatever=whatever)
        if found is None and whatever:
            found = self._with_other_choices(sizes)
        from onnxsmith.verification.inputs import size_refusals

        suggested = size_refusals.sizes(f"{refusal.what} {refusal.why}", sizes, self._plan.known)
        return found, list(itertools.islice(suggested, _PER_REFUSAL))

    def _likely(self) -> Iterator[Mapping[str, int]]:
        """Yields usual sizes, among them one with every symbol at a number from the graph."""
        bases = self.bases()
        first = next(bases, None)
        if first is None:
            return
        yield first
        numbers = proposals.numbers(self._plan.generator)
        at_numbers = {symbol: max(held) for symbol, held in numbers.items() if held and symbol not in self._plan.known}
        if at_numbers and self._plan.start is None:
            usual = {symbol: size for symbol, size in at_numbers.items() if size <= _MOST_BASE}
            fitted = self._plan.limits.fitted({**first, **usual})
            yield from [fitted] if fitted is not None else []
        yield from bases

    def _with_less(self, sizes: Mapping[str, int], refusal: Problem, *, whatever: bool) -> Run | None:
        """Tries smaller integers if the refusal is about an index; zeros and ones if its cause is unknown."""
        text = f"{refusal.what} {refusal.why}"
        if not self._has_integers:
            return None
        manners = []
        from onnxsmith.verification.inputs import size_refusals

        if size_refusals.is_of_index(text):
            limit = size_refusals.index_limit(text)
            manners = [replace(self.manner, most=most) for most in dict.fromkeys((limit, 1)) if most is not None]
        if whatever or manners:
            manners += [replace(self.manner, fill=fill) for fill in _FILLS]
        return self._at(sizes, manners)

    def _at(self, sizes: Mapping[str, int], manners: list[Manner]) -> Run | None:
        """Returns the first run of these manners that is answered with a number; each manner is also tried with other
        float values."""
        for manner in manners:
            run = self._try(sizes, manner)
            if run is None:
                continue
            self._fallback = self._fallback or run
            others = [replace(manner, spread=spread) for spread in SPREADS if spread != manner.spread]
            others += [replace(manner, fill=fill) for fill in _FILLS] if self._has_integers else []
            for other in (manner, *others):
                run = run if other is manner else self._try(sizes, other)
                if run is not None and has_finite_output(run.outputs):
                    self.manner = other
                    return run
            for chosen in self._other_choices():
                run = self._tries.run(sizes, self._plan.seed, chosen, manner)
                if run is not None and has_finite_output(run.outputs):
                    self.manner, self.chosen = manner, chosen
                    return run
        return None

    def _with_other_choices(self, sizes: Mapping[str, int]) -> Run | None:
        """Tries other values of the inputs that decide branches: the branch of the first values may refuse every
        input."""
        for chosen in self._other_choices():
            run = self._tries.run(sizes, self._plan.seed, chosen, self.manner)
            if run is not None and has_finite_output(run.outputs):
                self.chosen = chosen
                return run
        return None

    def _other_choices(self) -> Iterator[dict[str, int]]:
        """Yields other values of inputs that the graph compares with constants: a mask of zeros may give NaN where a
        mask of ones gives numbers. First all inputs take their last value, then one input at a time does."""
        choices = {name: values for name, values in self._plan.generator.choices().items() if len(values) > 1}
        if len(choices) > 1:
            yield {**self.chosen, **{name: values[-1] for name, values in choices.items()}}
        one_by_one = [{**self.chosen, name: value} for name, values in choices.items() for value in values[1:]]
        yield from one_by_one[:_CHOICES]
        yield from (chosen for chosen in self.combinations() if chosen not in one_by_one[:_CHOICES])

    def combinations(self) -> Iterator[dict[str, int]]:
        """Yields the values of several inputs that decide branches, together, up to a limit."""
        choices = {name: values for name, values in self._plan.generator.choices().items() if len(values) > 1}
        if len(choices) > 1:
            for values in itertools.islice(itertools.product(*choices.values()), _COMBINATIONS):
                yield {**self.chosen, **dict(zip(choices, values, strict=True))}

    def _try(self, sizes: Mapping[str, int], manner: Manner) -> Run | None:
        return self._tries.run(sizes, self._plan.seed, self.chosen, manner)

    def nothing_taken(self) -> OnnxsmithError:
        """Returns the error that no input was found. The fix of the error says how to give an input."""
        last, ports = self._tries.last, self._plan.generator.signature.required()
        if last is not None and last.id in LACKS:
            return LacksError(last)
        if last is not None and last.id == "runtime/memory":
            return OnnxsmithError(last)
        arrays = ", ".join(f"{port.name}=…" for port in ports[:4]) + (", …" if len(ports) > 4 else "")
        wanted = ", ".join(f"{port.name} {port.dtype}" for port in ports[:4])
        node = _REFUSING.search(last.why) if last and not symbols_of(self._plan.generator.signature) else None
        label = f"{node[1]} node {node[2]}".rstrip() if node else ""
        change = f"change the {label}: all its sizes are fixed, but it refuses them; or " if node else ""
        found = Problem(
            "verify/no-valid-input",
            f"the reference refused all {self._tries.refused} generated inputs",
            where=", ".join(f"{port.name}: {port}" for port in ports[:4]),
            why=f"the last refusal: {last.what} {last.why}" if last else "",
            fix=f"{change}give an input that works ({wanted}): write it with numpy.savez('inputs.npz', "
            f"**dict({arrays})) and "
            "add --input inputs.npz",
        )
        return FailsError(found, last) if last is not None and last.id in FAILS else OnnxsmithError(found)


_REFUSING = re.compile(r"while running (\w+) node\. Name:'([^']*)'")
"""Matches onnxruntime's message about the node that refuses an input."""
_MOST_BASE = 4096
"""Limits the numbers in the graph that are tried as a size while no usual size was refused. A choice."""
