"""Finds inputs that the reference accepts: several sizes for each symbolic dimension, and each value that the graph
requires.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.count_runs import CountRuns
from onnxsmith.verification.input_search import (
    MOST_ELEMENTS,
    Plan,
    Run,
    Search,
    Tries,
    answer,
    has_finite_output,
    tried,
)
from onnxsmith.verification.inputs.draw_description import EDGES, Manner
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import batches, of_feed
from onnxsmith.verification.resized_runs import Resizer
from onnxsmith.verification.rounding import Rounding
from onnxsmith.verification.runtime_choice import FAILS, LACKS, FailsError, LacksError
from onnxsmith.verification.value_comparison import difference

__all__ = ["Explorer", "Plan", "Run", "answer", "tried"]


class Explorer:
    """Finds inputs that the reference accepts."""

    def __init__(self, session: Session, plan: Plan, roundings: Mapping[str, Rounding]) -> None:
        self._session = session
        self._plan = plan
        self._roundings = roundings
        self._tries = Tries(session, plan)
        self._search = Search(self._tries)
        self._untried: tuple[str, ...] = ()
        self._uncounted: tuple[str, ...] = ()
        self.drawn: set[str] = set()
        """Names the outputs that differ between two runs on the same input; filled by `repeated`."""
        self._repeated = False
        self._first: Run | None = None
        self._unsteady: dict[int, set[str]] = {}
        self._untaken: list[Run] = []
        self._notes: list[str] = []

    @property
    def refused(self) -> int:
        """Counts the generated inputs that the reference refused."""
        return self._tries.refused

    @property
    def refused_sizes(self) -> tuple[str, ...]:
        """Returns the first of the refused sizes, as text."""
        return self._tries.refused_sizes()

    @property
    def untried(self) -> tuple[str, ...]:
        """Returns clauses for a headline: axes that stayed at one size, sizes that the reference refuses, inputs that
        were left out."""
        count, first = len(self._untaken), next((run.feed.label for run in self._untaken), "")
        return (
            *self._untried,
            *([f"the candidate's runtime refuses {several(count, 'input')}, first {first}"] if count else []),
        )

    @property
    def notes(self) -> list[str]:
        """Returns the notes for the reader of the comparison, so far."""
        crashed = self._tries.crashed
        crashes = f"left out {several(len(crashed), 'input')} that crash the reference, the first: "
        late = self._tries.late
        endless = (
            [f"left out {several(len(late), 'input')} on which the reference exceeds its time limit: {late[0]}"]
            if late
            else []
        )
        small = self._tries.hopeless
        shy = f"not tried: {several(small, 'input')} no larger than one that crashes the reference"
        smaller = [shy] if small else []
        large = self._tries.too_large
        skipped = [f"not tried: {several(large, 'input')} of more than {MOST_ELEMENTS:,} elements"] if large else []
        return [*self._notes, *(crashes + text for text in crashed[:1]), *smaller, *endless, *skipped]

    def runs(self) -> Iterator[Run]:
        """Yields runs on the inputs that the reference accepts, with the reference's outputs."""
        for run in self._found():
            self._first = self._first or run
            yield run

    def _found(self) -> Iterator[Run]:
        given = [replace(run, generated=False) for run in self._plan.answered]
        given += [self._strictly(feed) for feed in self._plan.given]
        yield from given
        base = self._search.base() if self._plan.generate else None
        found: list[Run] = []
        resizer: Resizer | None = None
        if base is not None:
            resizer = Resizer(self._tries, base, self._search.chosen, self._search.manner)
            for run in self._like(base, resizer):
                found.append(run)
                yield run
            for run in self._counted(base, list(found)):
                found.append(run)
                yield run
            self._notes += resizer.notes
        elif self._plan.generate and not given:
            raise self._search.nothing_taken()
        elif self._plan.generate:
            self._notes.append("only the given inputs were compared: the reference refused all generated inputs")
        tied = resizer.tied if resizer is not None else ()
        named = {dim for port in self._plan.generator.signature.inputs for dim in port.shape or ()}
        limited = untried_clauses([*given, *found], base, self._tries.outcomes, tied, named)
        if self._plan.generate:
            limited += [f"{name} was tried {one.in_words} only" for name, one in self._plan.limits.declared.items()]
        self._untried = (*limited, *(resizer.untried if resizer is not None else ()), *self._uncounted)
        if self._plan.generate and base is None:
            self._untried = (*self._untried, "no generated input was accepted")

    def _like(self, base: Run, resizer: Resizer) -> Iterator[Run]:
        yield base
        yield from self._other_values(base)
        yield from self._other_choices(base)
        for many in (at_trees, at_limits):
            yield from many(self._tries, base, self._search.chosen, self._search.manner)
        yield from resizer.runs()
        yield from self._turned(base)

    def _counted(self, base: Run, runs: Sequence[Run]) -> Iterator[Run]:
        """Yields runs with other counts."""
        other = CountRuns(self._tries, base, runs, self._search.chosen, self._search.manner)
        yield from other.runs()
        self._uncounted = tuple(other.untried)

    def _turned(self, base: Run) -> Iterator[Run]:
        """Yields a run at sizes of each group of the plan, if no run yet has sizes of this group."""
        for group in self._plan.turned:
            wanted = [{**base.feed.sizes, **sizes} for sizes in group]
            outcomes = [one for one in self._tries.outcomes if one[0] in wanted]
            if any(is_taken for _, is_taken in outcomes):  # an earlier run covers this group
                continue
            new = [sizes for sizes in wanted if (sizes, False) not in outcomes]
            tries = (self._tries.run(sizes, self._plan.seed, self._search.chosen, self._search.manner) for sizes in new)
            run = next((run for run in tries if run is not None), None)
            yield from [run] if run is not None else []

    def answered(self, feed: Feed) -> Run | None:
        """Returns a run on this input; None if the reference refuses it."""
        outputs, _ = answer(self._session, feed)
        return None if outputs is None else Run(feed, outputs)

    def repeated(self, run: Run) -> Set[str]:
        """Runs the reference again and returns `drawn`. The reference runs on the input of `run` if the user gave it,
        else on the first input.

        Raises:
            OnnxsmithError: `verify/nondeterministic` when an output differs and the plan is not `random`.
        """
        if not self._repeated:
            self._repeated = True
            self.drawn |= self.unsteady(run if not run.generated or self._first is None else self._first)
            if self.drawn and not self._plan.random:
                raise _not_repeatable(min(self.drawn))
            # An output that differs on the first input too is drawn; any other is unsteady on this input alone.
            if self.drawn and self._first is not None and self._first is not run:
                self.drawn &= self.unsteady(self._first)
        return self.drawn

    def unsteady(self, run: Run) -> set[str]:
        """Returns outputs that differ in two runs of the reference on this input."""
        if id(run) not in self._unsteady:
            again = self._answers(self._session, run)
            self._unsteady[id(run)] = {
                name for name in run.outputs if any(self._differs(run, one, name) for one in again)
            }
        return self._unsteady[id(run)]

    def unsteady_in(self, candidate: Session, run: Run) -> set[str]:
        """Returns the outputs that are uninitialised memory. A kernel returns such memory if it has no element to
        compute from. So on a generated input without elements, the candidate's outputs differ from run to run."""
        if not run.generated or not run.is_empty:
            return set()
        first, *others = self._answers(candidate, run)
        told = replace(run, outputs=first)
        return {name for name in first if any(self._differs(told, one, name) for one in others)}

    def _answers(self, session: Session, run: Run) -> list[Outputs]:
        """Returns the outputs of new runs on one input. An input without elements is run several times. Between these
        runs, other inputs leave other values in memory."""
        found = [session.run(run.feed.values)]
        if run.is_empty and self._first is not None and not self._first.is_empty:
            usual = self._first.feed.values
            for other in (usual, {name: _negated(value) for name, value in usual.items()}):
                answer(session, replace(self._first.feed, values=other))
                found.append(session.run(run.feed.values))
        return found

    def drops(self, run: Run, candidate: Session) -> bool:
        """Whether a run is left out, with a clause about the run. A run is left out if a generated input is empty along
        an axis, the two sides run on different runtimes, and the candidate answers differently, refuses the input or
        dies.

        The result for no elements, such as their mean, is the runtime's choice, so it says nothing about the file. Two
        sides on one runtime have to agree on this result.
        """
        empty = [*([run.feed.zero] if run.feed.zero else []), *(s for s, size in run.feed.sizes.items() if size == 0)]
        if not run.is_empty or not run.generated or candidate.provider == self._session.provider:
            return False
        try:
            outputs, refusal = answer(candidate, run.feed)
        except OnnxsmithError as error:
            if error.problem.id != "runtime/died":
                raise
            outputs, refusal = None, error.problem
        if outputs is not None and not any(self._differs(run, outputs, name) for name in run.outputs):
            return False
        run.left_out = True
        said = "answered differently" if outputs is not None else "not accepted"
        clause = f"{empty[0]} = 0 is {said} by {candidate.provider}"
        if refusal is not None:
            self._notes.append(f"{clause}: {refusal.what} {refusal.why}".strip())
        self._untried = (*self._untried, clause)
        return True

    def leave_out(self, run: Run, provider: str, refusal: Problem) -> None:
        """Leaves out a run that the candidate's runtime refuses for both models, and records a clause. Such a run shows
        a gap of the runtime, not of the candidate."""
        run.left_out = True
        if not self._untaken:
            self._notes.append(
                f"{provider} runs neither model on {run.feed.label}: {refusal.what} {refusal.why}".strip()
            )
        self._untaken.append(run)

    def _differs(self, run: Run, outputs: Outputs, name: str) -> bool:
        rounding = self._roundings.get(name)
        bounds = rounding.bounds if rounding else (0.0,)
        return name not in outputs or bool(difference(run.outputs[name], outputs[name], *bounds).reason)

    def _strictly(self, feed: Feed) -> Run:
        sizes = feed.sizes or of_feed(self._plan.generator.signature, feed.values)
        try:
            return Run(replace(feed, sizes=sizes), self._session.run(feed.values), generated=False)
        except OnnxsmithError as error:
            if error.problem.id not in FAILS | LACKS:
                raise
            lacks = error.problem.id in LACKS
            raise (LacksError(error.problem) if lacks else FailsError(error.problem, error.problem)) from error

    def _other_values(self, base: Run) -> Iterator[Run]:
        """Yields runs with other values at the base's sizes, if these give numbers. Large values saturate
        activations."""
        if not self._plan.generator.signature.required():
            return
        manner = self._search.manner
        large = [replace(manner, spread="large")] if manner.spread == "normal" else []
        for other in (*large, manner):
            run = self._tries.run(base.feed.sizes, self._plan.seed + 1, self._search.chosen, other)
            if run is not None and (other is manner or has_finite_output(run.outputs)):
                yield run
                break
        at_edges = replace(manner, spread=EDGES)
        run = self._tries.run(base.feed.sizes, self._plan.seed + 1, self._search.chosen, at_edges)
        if run is not None and has_finite_output(run.outputs):
            yield run

    def _other_choices(self, base: Run) -> Iterator[Run]:
        yield from self._mixed_choices(base)
        for name, values in self._plan.generator.choices().items():
            for value in values:
                if value == self._search.chosen.get(name):
                    continue
                chosen = {**self._search.chosen, name: value}
                here = [base.feed.sizes, *self._search.bases()]
                tries = (self._tries.run(sizes, self._plan.seed, chosen, self._search.manner) for sizes in here)
                found = next((run for run in tries if run is not None), None) or self._beside(base, name, value)
                if found is None:
                    self._notes.append(
                        f"{name} = {value} is a value to which the graph compares {name}, but it was refused "
                        "at every size that was tried"
                    )
                else:
                    yield found

    def _beside(self, base: Run, name: str, value: int) -> Run | None:
        """Returns a run in which an input has this value, and the other inputs that decide branches have other values
        than usual: the branches that they choose may fit only together."""
        for chosen in self._search.combinations():
            if chosen[name] == value:
                run = self._tries.run(base.feed.sizes, self._plan.seed, chosen, self._search.manner)
                if run is not None:
                    return run
        return None

    def _mixed_choices(self, base: Run) -> Iterator[Run]:
        """Yields a run in which each element is chosen independently, as in a mask."""
        several = {name for name, value in base.feed.values.items() if np.ndim(value) and np.size(value) > 1}
        chosen = {name: value for name, value in self._search.chosen.items() if name not in several}
        if len(chosen) < len(self._search.chosen):
            run = self._tries.run(base.feed.sizes, self._plan.seed, chosen, self._search.manner)
            yield from [run] if run is not None else []


def _negated(value: Any) -> Any:
    return -value if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _not_repeatable(name: str) -> OnnxsmithError:
    return problem(
        "verify/nondeterministic",
        f"output {name!r} differs between two runs on the same input",
        why="the model draws random numbers, or reads uninitialised memory",
        fix="make it repeatable (a fixed seed input, eval mode), or skip the verification: --no-verify",
    )


_MOST = 3
"""Limits the clauses about symbols in a headline; further symbols are only counted. A choice."""


def untried_clauses(
    runs: Sequence[Run],
    base: Run | None,
    outcomes: Iterable[tuple[Mapping[str, int], bool]],
    tied: Sequence[Sequence[str]] = (),
    named: Collection[int | str] | None = None,
) -> list[str]:
    """Returns one clause for each symbol whose sizes were limited. `base` is the input from which other inputs were
    made. `outcomes` are the tried sizes and whether the reference accepted them. `tied` are the symbols that change
    together. `named` are the dimensions that the user knows, without dimensions that occur only inside expressions."""
    at = base.feed.sizes if base is not None else {}
    groups = {symbol: set(group) for group in tied for symbol in group}
    refused: dict[str, set[int]] = {}
    for sizes, taken in outcomes if at else ():
        moved = {symbol for symbol, size in sizes.items() if size != at.get(symbol)}
        for symbol in moved if not taken else ():
            if moved == groups.get(symbol, {symbol}):
                refused.setdefault(symbol, set()).add(sizes[symbol])
    by_text: dict[str, list[str]] = {}
    for symbol, seen in tried(runs).items():
        said = _clause({size for size in seen if size}, refused.get(symbol, set()) - {0} - set(seen))
        if said and (named is None or symbol in named):
            by_text.setdefault(said, []).append(symbol)
    found = [f"{_listed(symbols)} {said}" for said, symbols in by_text.items()]
    left = sum(len(symbols) for symbols in list(by_text.values())[_MOST:])
    return [*found[:_MOST], *([f"{left} other axes were also limited"] if left else [])]


def _clause(taken: set[int], refused: set[int]) -> str:
    if not taken:
        return "was tried at 0 only"
    most = max(taken)
    if len(taken) == 1:
        return f"was tried at {most} only"
    larger = {size for size in refused if size > most}
    if larger and larger == refused:
        return (
            f"was refused above {most}"
            if most + 1 in larger
            else f"was accepted up to {most} and refused at {min(larger)}"
        )
    if len(taken) == 2 and larger and len(refused) > 2:
        return f"was accepted at {' and '.join(map(str, sorted(taken)))} only"
    return ""


def _listed(symbols: list[str]) -> str:
    return first_few(symbols, 3 if len(symbols) > 4 else 4)


_PARTS = 8
"""Limits the runs of one kind of rows if the batch size is fixed. A choice, like the limits below."""
_ROWS, _MOST_ROWS = 24, 512
"""Counts the rows for each number with which inputs are compared, and the rows in all."""
_DEAR = 1 << 22
"""Limits the elements of all tensors together in a run with more rows."""


def at_trees(tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> Iterator[Run]:
    """Yields one run with a row for each leaf and split if the batch is dynamic. Otherwise yields several runs at the
    base's sizes."""
    table = tries.plan.generator.table
    for kind in table.kinds:
        sizes = _larger(tries, base, table.wanted(kind))
        wanted = replace(manner, rows=kind)
        run = tries.run(sizes, tries.plan.seed + 3, chosen, wanted) if sizes is not None else None
        if run is not None:
            yield run
            continue
        for part in range(_PARTS):
            run = tries.run(base.feed.sizes, tries.plan.seed + 3, chosen, replace(wanted, part=part))
            if run is None:
                break
            yield run


def at_limits(tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> Iterator[Run]:
    """Yields a run with several rows for each number with which inputs are compared, if the batch is dynamic. Inputs
    that are compared as a whole, such as the boxes of a NonMaxSuppression, get several runs at the base's sizes."""
    limits = tries.plan.generator.compared
    rows = min(_ROWS * max((len(numbers) for numbers in limits.values()), default=0), _MOST_ROWS)
    sizes = _larger(tries, base, rows) if rows else None
    run = tries.run(sizes, tries.plan.seed + 4, chosen, manner) if sizes is not None else None
    yield from [run] if run is not None else []
    for part in range(_PARTS if any(role.limits for role in tries.plan.generator.roles.values()) else 0):
        run = tries.run(base.feed.sizes, tries.plan.seed + 5 + part, chosen, manner)
        yield from [run] if run is not None else []


def _larger(tries: Tries, base: Run, rows: int) -> dict[str, int] | None:
    """Returns the base's sizes with `rows` rows, or with fewer rows if the run would be too large; None if the batch
    cannot grow."""
    generator, plan = tries.plan.generator, tries.plan
    open_ = [
        symbol for symbol in batches(generator.signature) if symbol in base.feed.sizes and symbol not in plan.known
    ]
    now = max((base.feed.sizes[symbol] for symbol in open_), default=rows)
    while rows > now:
        sizes = plan.limits.fitted({**base.feed.sizes, **dict.fromkeys(open_, rows)})
        if sizes is None or sizes == base.feed.sizes:
            return None
        if generator.numbers.elements(generator.known(sizes)) <= _DEAR:
            return sizes
        rows //= 2
    return None
