"""Cuts the graph from both ends, by halving: the first prefix that fails, then the last suffix of it that does."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.reduction.case import Case
from onnxsmith.reduction.cuts import computing, without
from onnxsmith.reduction.oracle import Oracle
from onnxsmith.reduction.tensors import Known


def prefix(case: Case, known: Known, oracle: Oracle) -> Case:
    """The case without nodes at its end, as few left as halving finds. What these read becomes an output."""
    places = computing(case.model.graph)
    return _halved(case, len(places), oracle, lambda n: without(case, places[n:], known, bypass=False, live=True))


def suffix(case: Case, known: Known, oracle: Oracle) -> Case:
    """The case without nodes at its start. What these made becomes an input, with the value that it had."""
    places = computing(case.model.graph)
    count = len(places)
    return _halved(case, count, oracle, lambda n: without(case, places[: count - n], known, bypass=False, live=False))


def _halved(case: Case, count: int, oracle: Oracle, cut: Callable[[int], Case | None]) -> Case:
    """The smallest case that fails of those which `cut` makes, if they fail from some number of nodes on; whether or
    not they do, the one returned fails."""
    best, low, high = case, 0, count
    while high - low > 1:
        middle = (low + high) // 2
        smaller = cut(middle)
        if smaller is not None and oracle.fails(smaller):
            best, high = smaller, middle
        else:
            low = middle
    return best
