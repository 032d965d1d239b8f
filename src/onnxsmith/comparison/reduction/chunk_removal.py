"""Removes nodes in chunks that get smaller: from both ends of the graph, and from the middle (delta debugging).

A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
Engineering 28(2), 2002: the algorithm `ddmin`. Here a chunk is removed in one of two ways: its results are replaced by
similar tensors from which they were computed, or by inputs that hold their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from onnxsmith.comparison.reduction import body_reduction
from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.node_removal import computing, prune, without
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.graph.structure.model_copy import cloned

_Take = Callable[[Case, list[int]], "Iterable[Case | None]"]
_MOST_MISSES = 6
"""Failed cuts after which whole chunks are only bypassed. A choice: if a failure needs values from far away, every cut
removes it."""


def outputs(case: Case, known: Known, oracle: Oracle) -> Case:
    """Removes as many outputs as possible, and the nodes that only these needed."""
    return swept(case, oracle, lambda c: list(range(len(c.model.graph.outputs))), _without_outputs)


def nodes(case: Case, known: Known, oracle: Oracle) -> Case:
    """Removes nodes of the main graph that the failure does not need."""

    misses = 0

    def take(current: Case, doomed: list[int]) -> Iterator[Case | None]:
        nonlocal misses
        yield without(current, doomed, known, bypass=True, live=False)
        if misses < _MOST_MISSES or len(doomed) == 1:
            yield without(current, doomed, known, bypass=False, live=True)
            misses += 1  # the generator is resumed only if that case did not fail

    return swept(case, oracle, lambda c: computing(c.model.graph), take)


def inner_nodes(case: Case, known: Known, oracle: Oracle) -> Case:
    """Removes nodes of bodies and functions that the failure does not need."""
    return swept(
        case, oracle, lambda c: body_reduction.computing(c.model), lambda c, d: [body_reduction.without(c, d, known)]
    )


def swept(case: Case, oracle: Oracle, places: Callable[[Case], list[int]], take: _Take) -> Case:
    """Removes chunks of `places`, from the end, as long as the case fails: halves, quarters, … down to single
    places."""
    size = max(1, len(places(case)) // 2)
    while True:
        changed = False
        stop = len(places(case))
        while stop > 0:
            here = places(case)
            stop = min(stop, len(here))
            chunk = here[max(0, stop - size) : stop]
            fewer = (made for made in take(case, chunk) if made is not None and len(places(made)) < len(here))
            found = next((made for made in fewer if oracle.fails(made)), None) if chunk else None
            if found is not None:
                case, changed = found, True
            stop -= size
        if size == 1 and not changed:
            return case
        if not changed or size > 1:
            size = max(1, size // 2)


def _without_outputs(case: Case, doomed: list[int]) -> list[Case | None]:
    if len(doomed) == len(case.model.graph.outputs):
        return []
    copy = cloned(case.model)
    for index in reversed(doomed):
        copy.graph.outputs.pop(index)
    prune(copy)
    return [fed(copy, case.feeds)]


def shortest_prefix(case: Case, known: Known, oracle: Oracle) -> Case:
    """Keeps as few nodes from the start as halving finds. Operands of the removed nodes become outputs."""
    places = computing(case.model.graph)
    return _halved(case, len(places), oracle, lambda n: without(case, places[n:], known, bypass=False, live=True))


def shortest_suffix(case: Case, known: Known, oracle: Oracle) -> Case:
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
