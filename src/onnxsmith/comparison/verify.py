"""Runs two computations side by side on generated inputs and says whether they agree.

The reference decides which sizes make sense: a proposal that it refuses is passed over and counted. One that it takes
and the candidate refuses, or answers differently, is a difference. Every symbolic dimension is tried at several sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.clock import advance
from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import Difference, difference, is_float
from onnxsmith.feeds import sizes as proposals
from onnxsmith.feeds.generate import SPREADS, Feed, Generator
from onnxsmith.metrics.base import widen
from onnxsmith.model.signature import Signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.parts.verification import OutputCheck, Verification
from onnxsmith.runtimes.base import Outputs, Session

_SIZES_PER_SYMBOL = 2
"""Sizes tried for each symbol beside the base's."""
_TRIES_PER_SYMBOL = 12
_FATAL = {"runtime/died", "runtime/timeout"}
_TINY = 1e-12
"""Outputs below this scale are named: random weights that shrink from layer to layer give such, and test little."""


@dataclass(frozen=True)
class Side:
    """One of the two: a session and what the report calls it."""

    name: str
    session: Session


@dataclass
class Plan:
    """What to feed: `given` inputs first, then generated ones.

    `known` sizes stay fixed; `start` is a set of sizes that is known to work; without `generate` only `given` is fed.
    """

    generator: Generator
    given: tuple[Feed, ...] = ()
    known: Mapping[str, int] = field(default_factory=dict)
    start: Mapping[str, int] | None = None
    generate: bool = True
    seed: int = 0


@dataclass
class _Run:
    feed: Feed
    outputs: Outputs


def verify(reference: Side, candidate: Side, plan: Plan, roundings: Mapping[str, Rounding]) -> Verification:
    """Holds `candidate` to `reference`. `roundings` gives the tolerance of each output by name.

    Raises:
        OnnxsmithError: `verify/no-valid-input` when the reference takes none of the proposed inputs;
            `verify/nondeterministic` when it answers the same input differently; `verify/nothing-compared` when no
            output had an element to compare; `runtime/died` or `runtime/timeout` when a side is gone.
    """
    mismatch = interface_mismatch(reference.session.signature, candidate.session.signature)
    explorer = _Explorer(reference.session, plan, roundings)
    runs = list(explorer.runs())
    checks = _Checks(reference.session.signature, roundings)
    for index, run in enumerate(runs):
        advance("verify", index, len(runs))
        answer, refusal = _answer(candidate.session, run.feed)
        checks.add(run, answer, refusal)
    checks.judge_movement(runs)
    outputs = checks.results()
    if sum(output.compared for output in outputs) == 0 and not any(output.reason for output in outputs):
        raise problem(
            "verify/nothing-compared",
            "not one element could be compared",
            where=f"{reference.name} and {candidate.name}",
            why="every output was empty or NaN on every input",
            fix="give an input that the model is made for: --input name=file.npz",
        )
    return Verification(
        reference=reference.name,
        candidate=candidate.name,
        verified=True,
        equal=not mismatch and all(output.equal for output in outputs),
        runs=tuple(run.feed.label for run in runs),
        sizes=_tried(runs),
        refused=explorer.refused,
        outputs=outputs,
        notes=(*mismatch, *explorer.notes),
    )


def interface_mismatch(reference: Signature, candidate: Signature) -> tuple[str, ...]:
    """What a caller of the reference would trip over in the candidate: names, order, dtypes, frozen axes."""
    found: list[str] = []
    for what, ours, theirs in (
        ("input", reference.inputs, candidate.inputs),
        ("output", reference.outputs, candidate.outputs),
    ):
        names, other = [port.name for port in ours], [port.name for port in theirs]
        if names != other:
            found.append(f"{what}s are {', '.join(other) or 'none'}; expected {', '.join(names) or 'none'}")
            continue
        for a, b in zip(ours, theirs, strict=True):
            if (a.dtype, a.kind) != (b.dtype, b.kind) and "undefined" not in (a.dtype, b.dtype):
                found.append(f"{what} {a.name!r} is {b.kind} {b.dtype}; expected {a.kind} {a.dtype}")
            if what == "input" and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                frozen = [
                    f"axis {axis} of input {a.name!r} is fixed to {theirs_}; expected dynamic {ours_}"
                    for axis, (ours_, theirs_) in enumerate(zip(a.shape, b.shape, strict=True))
                    if isinstance(theirs_, int) and isinstance(ours_, str)
                ]
                found += frozen
    return tuple(found)


def _answer(session: Session, feed: Feed) -> tuple[Outputs | None, Problem | None]:
    try:
        return session.run(feed.values), None
    except OnnxsmithError as error:
        if error.problem.id in _FATAL:
            raise OnnxsmithError(replace(error.problem, where=f"{error.problem.where}; input {feed.label}")) from error
        return None, error.problem


def _tried(runs: Iterable[_Run]) -> dict[str, tuple[int, ...]]:
    tried: dict[str, list[int]] = {}
    for run in runs:
        for symbol, size in run.feed.sizes.items():
            tried.setdefault(symbol, []).append(size)
    return {symbol: tuple(sorted(set(found))) for symbol, found in tried.items()}


class _Explorer:
    """Finds inputs that the reference takes."""

    def __init__(self, session: Session, plan: Plan, roundings: Mapping[str, Rounding]) -> None:
        self._session = session
        self._plan = plan
        self._roundings = roundings
        self.refused = 0
        self.notes: list[str] = []
        self._last: Problem | None = None
        self._spread = SPREADS[0]

    def runs(self) -> Iterator[_Run]:
        given = [run for feed in self._plan.given if (run := self._strictly(feed))]
        yield from given
        if not self._plan.generate:
            return
        base = self._base()
        if base is None:
            if given:
                self.notes.append("only the given inputs were compared: no generated ones were taken by the reference")
                return
            raise self._nothing_taken()
        self._check_repeatable(base)
        yield base
        yield from self._other_values(base)
        yield from self._other_choices(base)
        yield from self._other_sizes(base)

    def _strictly(self, feed: Feed) -> _Run:
        return _Run(feed, self._session.run(feed.values))

    def _try(
        self, sizes: Mapping[str, int], seed: int, chosen: Mapping[str, int], spread: str | None = None
    ) -> _Run | None:
        feed = self._plan.generator.feed(dict(sizes), seed=seed, spread=spread or self._spread, chosen=chosen)
        outputs, self_problem = _answer(self._session, feed)
        if outputs is None:
            self.refused += 1
            self._last = self_problem
            return None
        return _Run(feed, outputs)

    def _base(self) -> _Run | None:
        choices = self._plan.generator.choices()
        first = {name: values[0] for name, values in choices.items()}
        fallback: _Run | None = None
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

    def _check_repeatable(self, base: _Run) -> None:
        again = self._session.run(base.feed.values)
        for name, value in base.outputs.items():
            rounding = self._roundings.get(name)
            if difference(value, again[name], rounding.tolerance if rounding else 0.0).reason:
                raise problem(
                    "verify/nondeterministic",
                    f"output {name!r} differs between two runs on the same input",
                    why="the model draws random numbers, or reads memory that nobody wrote",
                    fix="make it repeatable (a fixed seed input, eval mode), or go on unverified with --no-verify",
                )

    def _other_values(self, base: _Run) -> Iterator[_Run]:
        if self._plan.generator.signature.required():
            run = self._try(base.feed.sizes, self._plan.seed + 1, self._chosen)
            if run is not None:
                yield run

    def _other_choices(self, base: _Run) -> Iterator[_Run]:
        for name, values in self._plan.generator.choices().items():
            for value in values[1:]:
                chosen = {**self._chosen, name: value}
                here = [base.feed.sizes, *self._bases()]
                found = next((run for sizes in here if (run := self._try(sizes, self._plan.seed, chosen))), None)
                if found is None:
                    self.notes.append(
                        f"{name} = {value}, which the graph asks for, was taken at no size that was tried"
                    )
                else:
                    yield found

    def _other_sizes(self, base: _Run) -> Iterator[_Run]:
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
                self.notes.append(f"dimensions {', '.join(symbols)} go together: the reference takes equal sizes only")
                moved.update(dict.fromkeys(symbols, runs[-1].feed.sizes[symbols[0]]))
            else:
                self.notes.append(
                    f"dimension {', '.join(symbols)} was checked at size {size} only: "
                    "the reference took no other that was tried"
                )
        if len(moved) > 1:
            run = self._try({**base.feed.sizes, **moved}, self._plan.seed + 3, self._chosen)
            if run is not None:
                yield run

    def _resized(self, base: _Run, symbols: list[str]) -> Iterator[_Run]:
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
        return problem(
            "verify/no-valid-input",
            f"the reference took none of {self.refused} generated inputs",
            why=f"the last refusal: {last.what} {last.why}" if last else "",
            fix="give one that works: --input x=float32[1,3,224,224] or --input inputs.npz; or sizes: --dim height=64",
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


class _Checks:
    """Collects differences by output."""

    def __init__(self, signature: Signature, roundings: Mapping[str, Rounding]) -> None:
        self._ports = signature.outputs
        self._roundings = roundings
        self._worst: dict[str, Difference] = {port.name: Difference() for port in self._ports}
        self._where: dict[str, str] = {}
        self._still: set[str] = set()
        self._compared: dict[str, int] = dict.fromkeys(self._worst, 0)

    def add(self, run: _Run, answer: Outputs | None, refusal: Problem | None) -> None:
        """Takes in one run and the candidate's answer to it."""
        for port in self._ports:
            if answer is None:
                assert refusal is not None
                refused = f"{refusal.what} {refusal.why}".strip()
                found = Difference(f"the candidate refuses an input that the reference takes: {refused}")
            elif port.name not in answer:
                found = Difference("the candidate has no such output")
            else:
                found = difference(run.outputs[port.name], answer[port.name], self._tolerance(port.name))
            self._compared[port.name] += found.compared
            worst = self._worst[port.name]
            if (bool(found.reason), found.worst_rel, found.scale) > (bool(worst.reason), worst.worst_rel, worst.scale):
                self._worst[port.name] = found
                self._where[port.name] = run.feed.label

    def _tolerance(self, name: str) -> float:
        rounding = self._roundings.get(name)
        return rounding.tolerance if rounding is not None else 0.0

    def judge_movement(self, runs: list[_Run]) -> None:
        """Notes outputs that were the same for two inputs of the same sizes: agreeing on them shows little."""
        pairs = [(a, b) for a, b in itertools.pairwise(runs) if a.feed.sizes == b.feed.sizes and a.feed.values]
        for port in self._ports if pairs else ():
            tolerance = self._tolerance(port.name)
            if not any(difference(a.outputs[port.name], b.outputs[port.name], tolerance).reason for a, b in pairs):
                self._still.add(port.name)

    def results(self) -> tuple[OutputCheck, ...]:
        """One check per output, in the model's order."""
        return tuple(self._result(port.name, port.dtype) for port in self._ports)

    def _result(self, name: str, dtype: str) -> OutputCheck:
        worst, rounding = self._worst[name], self._roundings.get(name)
        floating = "float" in dtype or dtype in ("double", "complex64", "complex128")
        return OutputCheck(
            name=name,
            dtype=dtype,
            equal=not worst.reason,
            worst_abs=worst.worst_abs,
            worst_rel=worst.worst_rel,
            scale=worst.scale,
            tolerance=self._tolerance(name) if floating else 0.0,
            why_tolerance=str(rounding) if rounding is not None and floating else "",
            compared=self._compared[name],
            reason=worst.reason,
            where=self._where.get(name, "") if worst.reason else "",
            weak=self._weakness(name, worst, floating),
        )

    def _weakness(self, name: str, worst: Difference, floating: bool) -> str:
        if worst.reason:
            return ""
        if self._compared[name] == 0:
            return "nothing was compared: it was empty or NaN on every input"
        if floating and worst.scale < _TINY:
            return f"its values are of the size {worst.scale:.1g}: agreement at such a scale shows little"
        if name in self._still:
            return "it was the same for different inputs: agreement on it shows little"
        return ""
