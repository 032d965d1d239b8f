"""Finds the numbers in forward that fix a dynamic axis, among all numbers that equal the example's size of the axis.

In `x.reshape(2, 4, 2, 4)` both 2s equal a batch of 2, and perhaps only the first one is the batch. So the module runs
at other sizes with some of the numbers replaced by the size: few numbers first, in the order of the source.
"""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.tracing.code_trials import applied, equal, larger, results

_MOST_TRIALS, _MOST_SECONDS = 32, 10.0
"""Limit the choices of numbers that are tried. A choice: all choices of five numbers; small modules run in no time."""
_FOLLOWS, _CHANGES, _RUNS, _FAILS = 3, 2, 1, 0
"""Say how the outputs at another size are like those of the example: they grow and begin with those of the example, as
along a batch; they change their sizes, as along time; they keep their sizes; the module raises an error."""
_BEST = (_FOLLOWS, 2)
"""The grade of a choice with which the module follows both other sizes."""


def needed(found: Sequence[Suspicion], built: Built) -> list[Suspicion]:
    """Returns the suspicions with new code for the numbers that fix an axis alone. Leaves out a suspicion about numbers
    that fix no axis. If no choice of numbers runs at other sizes, a line with several numbers has no new code."""
    literals = list(dict.fromkeys(node for one in found for node in one.literals))
    if not literals:
        return list(found)
    chosen = _chosen(found, literals, built)
    if chosen is None:
        return [without_code(one) if len(one.literals) > 1 else one for one in found]
    kept = [one for one in found if not one.literals or chosen.intersection(_own(one))]
    spare = set(literals) - chosen
    return [one.without(spare) if spare.intersection(one.swaps) else one for one in kept]


def _own(suspicion: Suspicion) -> Iterator[ast.AST]:
    """Yields the numbers in the lines of the suspicion."""
    number = int(suspicion.finding.problem.where.rpartition(":")[2])
    yield from (node for node in suspicion.literals if getattr(node, "lineno", number) == number)


def _chosen(found: Sequence[Suspicion], literals: Sequence[ast.AST], built: Built) -> set[ast.AST] | None:
    """Returns the numbers whose replacement lets the module run at other sizes; None if no choice of them does. Tries
    the numbers alone, then together with the new code for other lines that fix an axis."""
    program, until = built.program, time.monotonic() + _MOST_SECONDS
    usual = results(program, built.example)
    inputs = [larger(built), larger(built, twice=True)]
    about = [one for one in found if one.literals]
    others = [one for one in found if one.freezes and one.finding.code and not one.literals]
    for group in [about, [*about, *others]] if others else [about]:
        best, grade = None, (_FAILS, 0)
        for choice in itertools.islice(_choices(literals), _MOST_TRIALS):
            spare = set(literals).difference(choice)
            with applied([_leaving(one, spare) for one in group]) as is_applied:
                if choice and not is_applied:
                    return None
                now = _grade([_likeness(usual, results(program, one)) for one in inputs])
            if now > grade and (choice or now == _BEST):
                best, grade = set(choice), now
            if grade == _BEST or time.monotonic() > until:
                break
        if best is not None:
            return best
    return None


def _grade(likenesses: Sequence[int]) -> tuple[int, int]:
    """Grades a choice: by the worst of the sizes at which the module runs, then by how many these are. A module may
    take multiples of a size only, or no more than a size."""
    runs = [one for one in likenesses if one != _FAILS]
    return min(runs, default=_FAILS), len(runs)


def _choices(literals: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, ...]]:
    for count in range(len(literals) + 1):
        yield from itertools.combinations(literals, count)


def _leaving(suspicion: Suspicion, nodes: Collection[ast.AST]) -> Suspicion:
    """Returns the suspicion with swaps that leave these nodes as they are."""
    return replace(suspicion, swaps={node: new for node, new in suspicion.swaps.items() if node not in nodes})


def _likeness(usual: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> int:
    """Compares the results at another size with those of the example."""
    if usual is None or found is None or found.keys() != usual.keys():
        return _FAILS
    pairs = [(usual[name], found[name]) for name in usual]
    if not any(np.shape(one) != np.shape(other) for one, other in pairs):
        return _RUNS
    return _FOLLOWS if all(_begins(other, one) for one, other in pairs) else _CHANGES


def _begins(longer: Any, example: Any) -> bool:
    """Whether the output begins with the example's output along all axes."""
    if not (isinstance(longer, np.ndarray) and isinstance(example, np.ndarray)) or longer.ndim != example.ndim:
        return False
    return equal(longer[tuple(slice(size) for size in example.shape)], example)


def without_code(suspicion: Suspicion) -> Suspicion:
    """Returns the suspicion without new code."""
    return replace(suspicion, finding=replace(suspicion.finding, code="", first=0, last=0))
