"""Tries inputs on the reference, and records which it accepts and which it refuses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.shapes import dims
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.seeds import refuse_negative
from onnxsmith.verification.metrics.base import widen
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
MOST_ELEMENTS = 1 << 24
"""Limits the elements of one generated input. A choice: 64 MiB of float32, twice that while the input is drawn."""


@dataclass
class Plan:
    """Describes the inputs to run: first the `given` inputs, then generated inputs.

    `known` sizes stay fixed; `start` are sizes that are known to work; without `generate`, only `given` is fed. With
    `random` the reference may draw random numbers: only dtype and shape of drawn outputs are compared. `turned` are
    groups of sizes. Of each group, the first sizes that the reference accepts are used.

    Raises:
        OnnxsmithError: `input/seed`.
    """

    generator: Generator
    given: tuple[Feed, ...] = ()
    known: Mapping[str, int] = field(default_factory=dict)
    start: Mapping[str, int] | None = None
    generate: bool = True
    seed: int = 0
    random: bool = False
    turned: Sequence[Sequence[Mapping[str, int]]] = ()

    def __post_init__(self) -> None:
        refuse_negative(self.seed)


@dataclass
class Run:
    """Holds one feed and the reference's outputs for it. A run that is `left_out` does not count."""

    feed: Feed
    outputs: Outputs
    generated: bool = True
    left_out: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether an axis of the feed has size 0."""
        return 0 in self.feed.sizes.values()


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
        if self._is_too_large(sizes):
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
