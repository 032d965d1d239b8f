"""Searches for a first input that the reference accepts and answers with numbers.

The search tries, in this order: usual sizes and values; sizes and narrower integers that a refusal suggests; the other
usual sizes; integers of all zeros and all ones. If the answer is empty or NaN, other values are tried at the same
sizes.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.graph.shapes.dims import symbols as symbols_of
from onnxsmith.verification.input_trials import Run, Tries, has_finite_output
from onnxsmith.verification.inputs import size_proposals as proposals
from onnxsmith.verification.inputs.draw_description import SPREADS, Manner
from onnxsmith.verification.runtime_choice import LACKS, LacksError

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
            yield {**self._plan.start, **self._plan.known}
        yield from proposals.bases(self._plan.generator.signature, self._plan.known)

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
            for size in range(1, _SWEPT):
                found = self._at({**others, symbol: size}, [self.manner])
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
        first = next(bases)
        yield first
        numbers = proposals.numbers(self._plan.generator)
        at_numbers = {symbol: max(held) for symbol, held in numbers.items() if held and symbol not in self._plan.known}
        if at_numbers and self._plan.start is None:
            yield {**first, **{symbol: size for symbol, size in at_numbers.items() if size <= _MOST_BASE}}
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
        one_by_one = ({**self.chosen, name: value} for name, values in choices.items() for value in values[1:])
        yield from itertools.islice(one_by_one, _CHOICES)

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
        return problem(
            "verify/no-valid-input",
            f"the reference took none of {self._tries.refused} generated inputs",
            where=", ".join(f"{port.name}: {port}" for port in ports[:4]),
            why=f"the last refusal: {last.what} {last.why}" if last else "",
            fix=f"give one that works ({wanted}): write it with numpy.savez('inputs.npz', **dict({arrays})) and add "
            "--input inputs.npz",
        )


_MOST_BASE = 4096
"""Limits the numbers in the graph that are tried as a size while no usual size was refused. A choice."""
