"""Finds the pairs of nodes of two graphs.

The steps, each for the nodes that the steps before it left:

1. the same computation, from the inputs of the graph on;
2. the same use, from the outputs of the graph back;
3. equal weights that no other node has, unless their pairs contradict each other's order;
4. equal tensors in the simplified forms of both models (`simplified_forms.py`);
5. the same computation or use between paired nodes: first with equal constants, then with constants of equal shape,
   then with any attributes and constants; and neighbours of pairs with the same operator;
6. the same operator a few nodes further on, where the nodes between have no partner;
7. another operator with the same operands and the same readers.

Names decide only between nodes that are otherwise alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from onnxsmith.comparison.graphs import pairing_by_neighbours, pairing_by_weights
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import Nodes, View, backward, forward
from onnxsmith.comparison.graphs.pairs import Pairs, Same
from onnxsmith.comparison.graphs.simplified_forms import SimplifiedForms

_ROUNDS = 4
"""How often step 5 is repeated at one level. A choice: each round starts from the pairs of the last, and most models
need one."""

Key = Callable[[ir.Node], Hashable]
Keys = tuple[Key, Key]


def pair_nodes(
    a: View,
    b: View,
    pairs: Pairs,
    outputs: Sequence[tuple[ir.Value, ir.Value]],
    forms: SimplifiedForms | None = None,
) -> None:
    """Pairs the nodes of two graphs. `pairs` has the pairs of their inputs, and of the outer values that they read.
    `outputs` are the pairs of their outputs. `forms` are the simplified forms of the models, if these are their main
    graphs."""
    _Pairing(a, b, pairs, outputs, forms).run()


class _Pairing:
    def __init__(
        self,
        a: View,
        b: View,
        pairs: Pairs,
        outputs: Sequence[tuple[ir.Value, ir.Value]],
        forms: SimplifiedForms | None,
    ) -> None:
        self._views = a, b
        self._forms = forms
        self._pairs = pairs
        self._numbers = a.side.numbers
        self._results: tuple[dict[ir.Value, Hashable], dict[ir.Value, Hashable]] = {}, {}
        for place, (one, other) in enumerate(outputs):  # a value may be several outputs
            self._results[0][one] = (*_as_tuple(self._results[0].get(one)), place)
            self._results[1][other] = (*_as_tuple(self._results[1].get(other)), place)
        self._walked: dict[Level, tuple[int, Any]] = {}
        self._hints: tuple[Keys, ...] = tuple((_hint(pairs, n), _hint(pairs, n)) for n in range(3))

    def run(self) -> None:
        computed, used = self._walks(Level.EXACT, fresh=True)
        for known, values in zip(self._pairs.exact, computed[0], strict=True):
            for value, number in values.items():
                known.setdefault(value, number)
        nodes = computed[1]
        for view in self._views:
            view.keeps = True
        for keys in (_combined(nodes, used), _looked_up(nodes), _looked_up(used)):
            self._match_unique(keys)
        self._unambiguous(Level.EXACT)
        for one, other in pairing_by_weights.weight_anchors(*self._views, self._pairs):
            self._pairs.add(one, other)
        self._unambiguous(Level.SHAPED)
        self._simplified()
        for level in Level:
            self._unambiguous(level)
        self._follow(lambda one, other: nodes[0].get(one) == nodes[1].get(other))
        used = self._both(Level.EXACT)[1] if self._left() else ({}, {})
        self._match(_looked_up(nodes), (_looked_up(used),), unequal=True)
        for level in Level:
            self._between(level)
        pairing_by_neighbours.pair_gaps(*self._views, self._pairs, self._same())
        pairing_by_neighbours.replaced(*self._views, self._pairs, self._same())

    def _simplified(self) -> None:
        """Pairs nodes of one operator whose results are equal tensors in the simplified forms of both models."""
        if self._forms is None or not self._forms.are_worth_it(len(self._pairs.nodes)):
            return
        a, b = self._views
        for x, y in self._forms.tensors.equal.items():
            one, other = a.producer(x), b.producer(y)
            if one is None or other is None or self._pairs.has(one) or self._pairs.has(other):
                continue
            is_same_place = one.outputs.index(x) == other.outputs.index(y) and len(one.outputs) == len(other.outputs)
            if is_same_place and a.own(one, Level.BARE) == b.own(other, Level.BARE):
                self._pairs.add(one, other)

    def _alike(self, level: Level, one: ir.Node, other: ir.Node) -> bool:
        return self._views[0].own(one, level) == self._views[1].own(other, level)

    def _follow(self, may: Callable[[ir.Node, ir.Node], bool]) -> None:
        pairing_by_neighbours.follow(*self._views, self._pairs, self._same(), may)

    def _unambiguous(self, level: Level) -> None:
        """Pairs nodes for which the pairs around them leave only one partner. So certain pairs decide before uncertain
        ones."""
        for _ in range(_ROUNDS):
            before = len(self._pairs.nodes)
            if not self._left():
                break
            computed, used = self._both(level)
            nodes = computed[1]
            one_way = (_looked_up(nodes), _looked_up(used)) if level is Level.EXACT else ()
            for keys in (_combined(nodes, used), *one_way):
                self._match_unique(keys)
            if len(self._pairs.nodes) == before:
                break

    def _match_unique(self, keys: Keys) -> None:
        """Pairs nodes with equal keys, if no other node has that key."""
        ours, theirs = (self._alone(view.nodes, key) for view, key in zip(self._views, keys, strict=True))
        for key, one in ours.items():
            other = theirs.get(key)
            if one is not None and other is not None:
                self._pairs.add(one, other)

    def _alone(self, nodes: Iterable[ir.Node], key: Key) -> dict[Hashable, ir.Node | None]:
        """Returns the nodes without a partner by their keys; None for a key that several nodes have."""
        found: dict[Hashable, ir.Node | None] = {}
        for node in nodes:
            if not self._pairs.has(node) and (value := key(node)) is not None:
                found[value] = None if value in found else node
        return found

    def _between(self, level: Level) -> None:
        for _ in range(_ROUNDS):
            before = len(self._pairs.nodes)
            if not self._left():
                return
            computed, used = self._both(level)
            nodes = computed[1]
            self._match(_combined(nodes, used), ())
            self._match(_looked_up(nodes), (_looked_up(used),))
            self._match(_looked_up(used), (_looked_up(nodes),))
            self._follow(partial(self._alike, level))
            if len(self._pairs.nodes) == before:
                return

    def _left(self) -> bool:
        """Whether both graphs have nodes of one operator without a partner."""
        ours, theirs = (
            {view.operator(node) for node in view.nodes if not self._pairs.has(node)} for view in self._views
        )
        return not ours.isdisjoint(theirs)

    def _same(self) -> Same:
        return Same(*self._views, self._pairs)

    def _both(self, level: Level) -> tuple[tuple[tuple[Any, Any], Any], Any]:
        """Returns the numbers of both walks for both graphs; those of the last time, if there is no new pair since."""
        known = self._walked.get(level)
        if known is None or known[0] != len(self._pairs.nodes):
            known = self._walked[level] = len(self._pairs.nodes), self._walks(level)
        return known[1]

    def _walks(self, level: Level, *, fresh: bool = False) -> tuple[tuple[tuple[Any, Any], Any], Any]:
        """Walks over both graphs, forward and backward. With `fresh`, no pairs of nodes are used."""
        tokens: tuple[dict[ir.Value, int], dict[ir.Value, int]] = {}, {}
        for known, token, view in zip(self._pairs.exact, tokens, self._views, strict=True):
            token.update((value, known[value]) for value in view.outside if value in known)
        for value in self._views[0].values():
            if value in self._pairs.values:
                number = self._numbers.of(("pair", len(tokens[0])))
                tokens[0][value] = tokens[1][self._pairs.values[value]] = number
        seeds: tuple[dict[ir.Node, int], dict[ir.Node, int]] = {}, {}
        for place, node in enumerate(self._views[0].nodes if not fresh else ()):
            if node in self._pairs.nodes:
                seeds[0][node] = seeds[1][self._pairs.nodes[node]] = self._numbers.of(("pair of nodes", place))
        ahead = [
            forward(view, token, level, self._unknown(view, token))
            for view, token in zip(self._views, tokens, strict=True)
        ]
        back = [
            backward(view, seed, results, level)
            for view, seed, results in zip(self._views, seeds, self._results, strict=True)
        ]
        return ((ahead[0][0], ahead[1][0]), (ahead[0][1], ahead[1][1])), (back[0], back[1])

    def _unknown(self, view: View, tokens: Mapping[ir.Value, int]) -> list[ir.Node]:
        """Returns the nodes whose numbers are not known from their pairs."""
        return [
            node
            for node in view.graph
            if not self._pairs.has(node) or any(value not in tokens for value in node.outputs)
        ]

    def _match(self, keys: Keys, ties: tuple[Keys, ...], *, unequal: bool = False) -> None:
        """Pairs nodes with equal keys. With `unequal`, also if one side has more of them."""
        ours, theirs = (self._grouped(view.nodes, key) for view, key in zip(self._views, keys, strict=True))
        for key, found in ours.items():
            if key in theirs:
                self._settle(found, theirs[key], (*ties, *self._hints), keys, unequal)

    def _grouped(self, nodes: Iterable[ir.Node], key: Key) -> dict[Hashable, list[ir.Node]]:
        groups: dict[Hashable, list[ir.Node]] = defaultdict(list)
        for node in nodes:
            if not self._pairs.has(node) and (value := key(node)) is not None:
                groups[value].append(node)
        return groups

    def _settle(
        self, ours: list[ir.Node], theirs: list[ir.Node], ties: tuple[Keys, ...], keys: Keys, unequal: bool
    ) -> None:
        """Pairs the nodes of one group, first those that a further key distinguishes."""
        ours, theirs = self._free(ours), self._free(theirs)
        if not ours or not theirs or (len(ours) != len(theirs) and not unequal):
            return
        if len(ours) == len(theirs) == 1:
            self._accept(ours[0], theirs[0], keys)
            return
        if len(ties) == len(self._hints):  # only names are left
            for one, other in pairing_by_weights.nearest(*self._views, ours, theirs):
                self._accept(one, other, keys)
            for one, other in pairing_by_neighbours.likeliest(*self._views, ours, theirs, self._pairs, self._same()):
                self._accept(one, other, keys)
        if not ties:
            for one, other in zip(ours, theirs, strict=False):
                if not self._pairs.has(one) and not self._pairs.has(other):
                    self._accept(one, other, keys)
            rest = self._free(ours), self._free(theirs)
            for one, other in zip(*rest, strict=False):
                self._accept(one, other, keys)
            return
        first, second = (self._grouped(side, key) for side, key in zip((ours, theirs), ties[0], strict=True))
        for value, found in first.items():
            if value in second:
                self._settle(found, second[value], ties[1:], keys, False)
        self._settle(ours, theirs, ties[1:], keys, unequal)

    def _free(self, nodes: Iterable[ir.Node]) -> list[ir.Node]:
        return [node for node in nodes if not self._pairs.has(node)]

    def _accept(self, a: ir.Node, b: ir.Node, keys: Keys) -> None:
        """Adds a pair, and pairs around it with equal keys. So, among equal branches, the nodes of one branch are all
        paired with nodes of the same other branch."""
        if self._pairs.has(a) or self._pairs.has(b):
            return
        self._pairs.add(a, b)
        queue = [(a, b)]
        while queue:
            for one, other in pairing_by_neighbours.around(*self._views, *queue.pop(), self._pairs):
                key = keys[0](one)
                if (
                    key is not None
                    and key == keys[1](other)
                    and not self._pairs.has(one)
                    and not self._pairs.has(other)
                ):
                    self._pairs.add(one, other)
                    queue.append((one, other))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return () if value is None else value


def _hint(pairs: Pairs, number: int) -> Key:
    return lambda node: pairs.hints(node)[number] or None


def _looked_up(nodes: tuple[Nodes, Nodes]) -> Keys:
    return nodes[0].get, nodes[1].get


def _combined(ahead: tuple[Nodes, Nodes], back: tuple[Nodes, Nodes]) -> Keys:
    def key(side: int) -> Key:
        first: Mapping[ir.Node, int] = ahead[side]
        second: Mapping[ir.Node, int] = back[side]
        return lambda node: (first[node], second[node]) if node in first and node in second else None

    return key(0), key(1)
