"""Finds names that no value of a model has yet."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container

import onnx_ir as ir

from onnxsmith.graph.structure import walk


def unused(wish: str, taken: Container[str | None]) -> str:
    """Returns `wish`, or the first of `wish_1`, `wish_2` and so on that is not taken."""
    name, numbers = wish, itertools.count(1)
    while name in taken:
        name = f"{wish}_{next(numbers)}"
    return name


class Names:
    """Counts the names of values over all graphs of a model, and makes new names that are free in all graphs."""

    def __init__(self, model: ir.Model) -> None:
        self._held: Counter[str] = Counter()
        self._next: dict[str, int] = {}
        for graph in walk.graphs(model):
            self._held.update(_own(graph))

    def free(self, wish: str) -> str:
        """Returns `wish`, or `wish_1` and so on, and reserves the name."""
        name = wish
        numbers = itertools.count(self._next.get(wish, 1))
        while self._held[name]:
            number = next(numbers)
            self._next[wish] = number + 1
            name = f"{wish}_{number}"
        self._held[name] += 1
        return name

    def is_shared(self, name: str) -> bool:
        """Whether several values (in different graphs) have this name."""
        return self._held[name] > 1

    def drop(self, name: str) -> None:
        """Counts one value less with this name."""
        self._held[name] -= 1

    def drop_graph(self, graph: ir.Graph) -> None:
        """Removes the values of a graph, and of its nested graphs, from the count."""
        self._held.subtract(_own(graph))
        for inner in walk.nested(graph):
            self._held.subtract(_own(inner))


def _own(graph: ir.Graph) -> list[str]:
    values = dict.fromkeys((*graph.inputs, *graph.initializers.values()))
    names = [value.name for value in values]
    names += [value.name for node in graph for value in node.outputs]
    return [name for name in names if name]
