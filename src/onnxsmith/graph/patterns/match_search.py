"""Finds all ways in which a pattern matches with a node of a model as its result.

The search walks up the pattern from its result and memoises: for each pair of a pattern node and a model node, it keeps
one way per binding of the keys that other parts of the pattern use, too (variables, nodes). So nested commutative
operators cost the number of such bindings, not the number of all orders."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.patterns import attribute_matching, constant_matching
from onnxsmith.graph.patterns.commutative import is_commutative
from onnxsmith.graph.patterns.pattern import (
    Anything,
    AttributeVariable,
    Either,
    Operand,
    PatternNode,
    Rest,
    Result,
    Variable,
)
from onnxsmith.graph.patterns.pattern_validation import choices
from onnxsmith.graph.patterns.search_plan import Key, Plan, operands

Way = dict[Key, Any]
"""Is one way to match a part of a pattern: values, nodes and attributes by their keys."""
_MOST = 5000
"""Limits the ways to match one part of a pattern at one node. A choice: patterns of 20 operators in real graphs have
few."""


class Search:
    """A search in graphs that import these opset versions. `blocked` nodes do not match. With `within`, only nodes
    directly in this graph match."""

    def __init__(self, plan: Plan, imports: Mapping[str, int], within: ir.Graph | ir.Function | None = None) -> None:
        self._plan, self._imports, self._within = plan, imports, within
        self._blocked: set[ir.Node] = set()
        self._ways: dict[tuple[int, ir.Node], Sequence[Way]] = {}
        self._never: set[tuple[int, ir.Node]] = set()
        self._readers: dict[tuple[int, ir.Value], deque[ir.Node]] = {}

    def block(self, nodes: Iterable[ir.Node]) -> None:
        """Excludes these nodes from further matches."""
        self._blocked.update(nodes)
        self._ways.clear()

    def ways(self, node: ir.Node) -> Iterator[tuple[Way, tuple[ir.Value, ...]]]:
        """Yields the ways to match with the node making the first result, each with the values of all results."""
        for choice in self._plan.anchors:
            if choice.output < len(node.outputs):
                for way in self._at(choice.node, node):
                    yield from self._further(way, (node.outputs[choice.output],))

    def _further(self, way: Way, outputs: tuple[ir.Value, ...]) -> Iterator[tuple[Way, tuple[ir.Value, ...]]]:
        """Extends a way by the further results of the pattern; yields each extension."""
        wanted = self._plan.pattern.outputs
        if len(outputs) == len(wanted):
            yield way, outputs
            return
        for choice in choices(wanted[len(outputs)]):
            assert isinstance(choice, Result)
            if choice.node in way:
                made: Sequence[ir.Value] = way[choice.node].outputs
                if choice.output < len(made):
                    yield from self._further(way, (*outputs, made[choice.output]))
                continue
            bound = {node for key, node in way.items() if isinstance(key, int)}
            for node in self._candidates(choice.node, way):
                if node in bound or node.graph is not outputs[0].graph or choice.output >= len(node.outputs):
                    continue
                for more in self._at(choice.node, node):
                    merged = self._merged(way, more)
                    if merged is not None:
                        yield from self._further(merged, (*outputs, node.outputs[choice.output]))

    def _candidates(self, root: int, way: Way) -> Sequence[ir.Node]:
        """Returns the nodes that may make a further result of the pattern, found as readers of values that are bound
        already."""
        approach = next((one for one in self._plan.approaches[root] if one.key in way), None)
        if approach is None:
            return ()
        start = way[approach.key]
        nodes: list[ir.Node] = []
        values: Sequence[ir.Value] = [start] if isinstance(start, ir.Value) else start.outputs
        for index in approach.path:
            nodes = list(dict.fromkeys(node for value in values for node in self._reading(index, value)))
            values = [value for node in nodes for value in node.outputs]
        return nodes

    def _reading(self, index: int, value: ir.Value) -> Sequence[ir.Node]:
        """Returns the readers of a value that may match this node of the pattern."""
        found = self._readers.get((index, value))
        if found is None:
            wanted = self._plan.pattern.nodes[index]
            found = deque(dict.fromkeys(node for node in value.consumers() if _is_operator(wanted, node)))
            self._readers[index, value] = found
        # blocked nodes stay blocked, so they are dropped for good
        while found and (found[0] in self._blocked or (index, found[0]) in self._never):
            found.popleft()
        return tuple(found)

    def _at(self, index: int, node: ir.Node) -> Sequence[Way]:
        """Returns the ways to match a node of the pattern at a node of the model."""
        key = (index, node)
        if key in self._never or node in self._blocked or (self._within is not None and node.graph is not self._within):
            return ()
        found = self._ways.get(key)
        if found is None:
            found = self._found(index, node)
            if found:
                self._ways[key] = found
            else:
                self._never.add(key)
        return found

    def _found(self, index: int, node: ir.Node) -> Sequence[Way]:
        wanted = self._plan.pattern.nodes[index]
        if not _is_operator(wanted, node):
            return ()
        seen = self._attributes(wanted, node) if wanted.attributes else {}
        if seen is None:
            return ()
        fixed, more = operands(wanted)
        given = actual_operands(wanted, node, self._imports.get(node.domain, 0))
        if len(given) > len(fixed) and not more:
            return ()
        given += [None] * (len(fixed) - len(given))
        start: Way = {**seen, index: node}
        return self._distinct(self._orders(index, fixed, given, start, node), self._plan.visible[index])

    def _attributes(self, wanted: PatternNode, node: ir.Node) -> Way | None:
        """Returns the bindings of the attribute variables; None if an attribute differs."""
        version = self._imports.get(node.domain, 0)
        bound: Way = {}
        for name, value in wanted.attributes:
            place = attribute_matching.operand_place(node, name, version) if name not in node.attributes else None
            if place is not None:
                operand = node.inputs[place] if place < len(node.inputs) else None
                if not attribute_matching.operand_equals(operand, value):
                    return None
                found = attribute_matching.of_operand(name, operand)
            else:
                found = attribute_matching.given(node, name, version)
                if not attribute_matching.attribute_equals(
                    found, value, attribute_matching.default(node, name, version)
                ):
                    return None
            if isinstance(value, AttributeVariable) and value.name:
                if (value.name,) in bound and not attribute_matching.same_attribute(bound[value.name,], found):
                    return None
                bound[value.name,] = found
        return bound

    def _orders(
        self, index: int, fixed: Sequence[Operand], given: Sequence[ir.Value | None], start: Way, node: ir.Node
    ) -> Iterator[Way]:
        """Yields the ways for every order of the operands if the operator is commutative, else for the given order."""
        if not is_commutative(node) or len(given) < 2:
            yield from self._row(fixed, given, start)
        elif len(given) == 2 and len(fixed) == 2:
            yield from self._row(fixed, given, start)
            # the other order of equal operands would repeat the same ways
            if given[0] is not given[1] and not self._plan.symmetric[index]:
                yield from self._row(fixed, (given[1], given[0]), start)
        else:
            yield from self._any_order(fixed, given, start)

    def _row(self, fixed: Sequence[Operand], given: Sequence[ir.Value | None], start: Way) -> Sequence[Way]:
        """Returns the ways to match the operands in the given order."""
        found: Sequence[Way] = (start,)
        for operand, value in zip(fixed, given, strict=False):
            found = self._joined(found, self._operand(operand, value))
            if not found:
                break
        return found

    def _any_order(self, fixed: Sequence[Operand], given: Sequence[ir.Value | None], start: Way) -> Iterator[Way]:
        """Yields the ways to match operands in any order. Operands that take any value are assigned last."""
        picky = [operand for operand in fixed if not self._plan.is_free(operand)]
        free = [operand for operand in fixed if self._plan.is_free(operand)]
        states: dict[Any, tuple[frozenset[int], Way]] = {(): (frozenset(), start)}
        for operand in picky:
            reached: dict[Any, tuple[frozenset[int], Way]] = {}
            for used, way in states.values():
                for place, value in enumerate(given):
                    if place not in used:
                        for merged in self._joined((way,), self._operand(operand, value)):
                            # ways that differ only in keys that stand once are equal for the rest of the pattern
                            key = (used | {place}, *(id(merged.get(one)) for one in self._plan.shared))
                            reached.setdefault(key, (used | {place}, merged))
                            self._count(len(reached))
            states = reached
        for used, way in states.values():
            left = [value for place, value in enumerate(given) if place not in used]
            yield from self._row(free, left, way)

    def _operand(self, operand: Operand, value: ir.Value | None) -> Sequence[Way]:
        """Returns the ways to match an operand of the pattern with a value."""
        if operand is None or value is None:
            return ({},) if operand is None and value is None else ()
        if isinstance(operand, Variable):
            return ({operand.name: value},) if constant_matching.is_kind(value, operand.kind) else ()
        if isinstance(operand, Result):
            node = value.producer()
            return self._at(operand.node, node) if node is not None and value.index() == operand.output else ()
        if isinstance(operand, Either):
            return [way for one in operand.choices for way in self._operand(one, value)]
        if isinstance(operand, Anything | Rest):
            return ({},)
        return ({},) if constant_matching.equals(value, operand) else ()

    def _joined(self, left: Sequence[Way], right: Sequence[Way]) -> Sequence[Way]:
        """Returns the merged ways of all pairs, one from each side, that do not contradict each other."""
        if len(right) == 1 and not right[0]:
            return left
        if len(left) == 1 == len(right):
            both = self._merged(left[0], right[0])
            return () if both is None else (both,)
        merged = (self._merged(one, other) for one in left for other in right)
        return self._distinct((one for one in merged if one is not None), self._plan.shared)

    def _distinct(self, ways: Iterable[Way], keys: Sequence[Key]) -> Sequence[Way]:
        """Keeps the first of the ways that bind these keys alike."""
        rest = iter(ways)
        few = tuple(itertools.islice(rest, 2))
        if len(few) < 2:
            return few
        found: dict[tuple[int, ...], Way] = {}
        for way in itertools.chain(few, rest):
            found.setdefault(tuple(id(way.get(key)) for key in keys), way)
            self._count(len(found))
        return tuple(found.values())

    def _count(self, number: int) -> None:
        if number > _MOST:
            raise problem(
                "pattern/too-many-ways",
                f"a part of the pattern matches one node in more than {_MOST} ways",
                where=f"the pattern {self._plan.pattern.name}",
                why="operands of the pattern may be swapped, and it contains variables or results several times",
                fix="look for a smaller part, or use each variable only once",
            )

    def _merged(self, a: Way, b: Way) -> Way | None:
        """Returns the union of two ways; None if they bind a key differently."""
        for key, found in b.items():
            if key in a and a[key] is not found and not self._is_same(key, a[key], found):
                return None
        return {**b, **a}

    def _is_same(self, key: Key, a: Any, b: Any) -> bool:
        if isinstance(key, str):
            return constant_matching.same(a, b, self._plan.kinds[key])
        return isinstance(key, tuple) and attribute_matching.same_attribute(a, b)


def actual_operands(wanted: PatternNode, node: ir.Node, version: int) -> list[ir.Value | None]:
    """Returns the operands of a node, without missing operands at the end and without operands that the pattern has as
    attributes."""
    named = attribute_matching.named_operands(wanted, node, version).values() if wanted.attributes else ()
    found = [value for place, value in enumerate(node.inputs) if place not in named]
    while found and found[-1] is None:
        found.pop()
    return found


def _is_operator(wanted: PatternNode, node: ir.Node) -> bool:
    return not wanted.op_type or (node.op_type == wanted.op_type and node.domain == wanted.domain)
