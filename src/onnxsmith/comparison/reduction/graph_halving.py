"""Cuts the graph from both ends by halving: first to the shortest failing prefix, then to a suffix of it."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.node_removal import computing, without
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known


def prefix(case: Case, known: Known, oracle: Oracle) -> Case:
    """Keeps as few nodes from the start as halving finds. Operands of the removed nodes become outputs."""
    places = computing(case.model.graph)
    return _halved(case, len(places), oracle, lambda n: without(case, places[n:], known, bypass=False, live=True))


def suffix(case: Case, known: Known, oracle: Oracle) -> Case:
    """Keeps as few nodes from the end as halving finds. Results of the removed nodes become inputs."""
    places = computing(case.model.graph)
    count = len(places)
    return _halved(case, count, oracle, lambda n: without(case, places[: count - n], known, bypass=False, live=False))


def _halved(case: Case, count: int, oracle: Oracle, cut: Callable[[int], Case | None]) -> Case:
    """Returns the smallest failing case that `cut` makes, if all cases from some number of nodes on fail. The returned
    case fails even if they do not."""
    best, low, high = case, 0, count
    while high - low > 1:
        middle = (low + high) // 2
        smaller = cut(middle)
        if smaller is not None and oracle.fails(smaller):
            best, high = smaller, middle
        else:
            low = middle
    return best
