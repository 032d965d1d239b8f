"""Computes once what a search needs to know about a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from onnxsmith.graph.patterns.pattern import (
    Anything,
    AttributeVariable,
    Kind,
    Operand,
    Pattern,
    PatternNode,
    Rest,
    Result,
    Variable,
)
from onnxsmith.graph.patterns.pattern_validation import choices

Key = str | int | tuple[str]
"""Is a part of the pattern that a way binds: a variable (its name), a node (its index), an attribute variable (its name
in a tuple)."""


@dataclass(frozen=True)
class Approach:
    """A path to a node of the pattern: the bound `key` where it starts, and the nodes from the reader of that key
    on."""

    key: Key
    path: tuple[int, ...]


@dataclass
class Plan:
    """A pattern, prepared for the search.

    `shared` are the keys that stand at several places of the pattern. `visible` are, for each node, the shared keys
    that stand both in the part that the node depends on and outside of it. `symmetric` tells which nodes have two equal
    operands.

    If ways differ only in variables and results that stand once, the search gives one of them. With `apart`, it gives
    one for each binding of these names; with None, of all names."""

    pattern: Pattern
    apart: Collection[str] | None = ()
    kinds: dict[str, Kind] = field(init=False)
    anchors: tuple[Result, ...] = field(init=False)
    anchor_types: frozenset[tuple[str, str]] = field(init=False)
    shared: tuple[Key, ...] = field(init=False)
    visible: tuple[tuple[Key, ...], ...] = field(init=False)
    symmetric: tuple[bool, ...] = field(init=False)
    approaches: dict[int, tuple[Approach, ...]] = field(init=False)

    def __post_init__(self) -> None:
        pattern = self.pattern
        self.kinds = {one.name: one.kind for one in pattern.variables}
        self.anchors = tuple(one for one in choices(pattern.outputs[0]) if isinstance(one, Result))
        anchors = [pattern.nodes[one.node] for one in self.anchors]
        self.anchor_types = frozenset((one.domain, one.op_type) for one in anchors)
        counted: list[Counter[Key]] = []
        for index, node in enumerate(pattern.nodes):
            counted.append(_counted(index, node, counted))
        total: Counter[Key] = Counter()
        for output in pattern.outputs:
            for choice in choices(output):
                assert isinstance(choice, Result)
                total += counted[choice.node]
        apart = self._apart(total)
        self.shared = tuple(key for key, count in total.items() if count > 1 or key in apart)
        self.visible = tuple(
            tuple(key for key in self.shared if key in apart or 0 < counts[key] < total[key]) for counts in counted
        )
        self.symmetric = tuple(len(node.inputs) == 2 and node.inputs[0] == node.inputs[1] for node in pattern.nodes)
        others = {one.node for output in pattern.outputs[1:] for one in choices(output) if isinstance(one, Result)}
        self.approaches = {index: tuple(self._approaches(index)) for index in others}

    def _apart(self, every: Collection[Key]) -> Collection[Key]:
        """Returns the keys of the names for which every binding gives a way of its own (see `apart`)."""
        if self.apart is None:
            return every
        nodes = (index for index, node in enumerate(self.pattern.nodes) if not set(node.outputs).isdisjoint(self.apart))
        return {*self.apart, *nodes}

    def is_free(self, operand: Operand) -> bool:
        """Whether the operand takes any value, independent of the other operands."""
        is_any = isinstance(operand, Variable) and operand.kind is Kind.VALUE and operand.name not in self.shared
        return is_any or isinstance(operand, Anything)

    def readers(self, index: int) -> list[int]:
        """Returns the nodes of the pattern that read a result of this node."""
        found = []
        for reader, node in enumerate(self.pattern.nodes):
            reads = (one for operand in node.inputs for one in choices(operand) if isinstance(one, Result))
            if any(one.node == index for one in reads):
                found.append(reader)
        return found

    def title(self, output: Operand) -> str:
        """Returns the titles of the operators that may make a result of the pattern, joined by "or"."""
        titles = [self.pattern.nodes[one.node].title for one in choices(output) if isinstance(one, Result)]
        return " or ".join(dict.fromkeys(titles))

    def _approaches(self, root: int) -> Iterator[Approach]:
        """Yields the approaches to a node from keys that earlier results may have bound: from nodes first, then values,
        then constants."""
        found: dict[Key, Approach] = {}
        queue: list[tuple[int, tuple[int, ...]]] = [(root, (root,))]
        for index, path in queue:
            for operand in self.pattern.nodes[index].inputs:
                for one in choices(operand):
                    key = one.node if isinstance(one, Result) else one.name if isinstance(one, Variable) else None
                    if key is None or key in found or key not in self.shared:
                        if isinstance(one, Result) and key not in found:
                            queue.append((one.node, (one.node, *path)))
                        continue
                    found[key] = Approach(key, path)
                    if isinstance(one, Result):
                        queue.append((one.node, (one.node, *path)))
        yield from sorted(found.values(), key=self._sureness)

    def _sureness(self, approach: Approach) -> int:
        if isinstance(approach.key, int):
            return 0
        return 1 if isinstance(approach.key, str) and self.kinds[approach.key] is Kind.VALUE else 2


def _counted(index: int, node: PatternNode, counted: list[Counter[Key]]) -> Counter[Key]:
    """Counts how often each key stands in the part of the pattern that a node depends on, the node included."""
    found: Counter[Key] = Counter([index])
    found.update((value.name,) for _, value in node.attributes if isinstance(value, AttributeVariable) and value.name)
    for operand in node.inputs:
        for one in choices(operand):
            if isinstance(one, Variable):
                found[one.name] += 1
            elif isinstance(one, Result):
                found += counted[one.node]
    return found


def operands(node: PatternNode) -> tuple[tuple[Operand, ...], bool]:
    """Returns the operands of a node of the pattern without `...`, and whether further operands may follow."""
    if node.inputs and isinstance(node.inputs[-1], Rest):
        return node.inputs[:-1], True
    return node.inputs, not node.op_type
