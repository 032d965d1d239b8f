"""Makes the rooms of a model: their items, their layouts, and an edge for every value between items."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxsmith.graph.structure import captures, walk
from onnxsmith.viewer.layout.arrange import arranged
from onnxsmith.viewer.layout.graph import Edge, Graph, Layout, from_end
from onnxsmith.viewer.numbering import Numbering, Part
from onnxsmith.viewer.scene import CONSTANT, GRAPH_INPUT, INPUT, NODE, OUTPUT, ROOM, STUB, Edges, Items, Room
from onnxsmith.viewer.tree import Box, grown, letter, ways


@dataclass(eq=False)
class Furnished:
    """Holds the rooms of a model. `aliases` are rooms by further paths: the paths of modules with the same nodes as
    their room."""

    aliases: dict[str, int]
    notes: list[str]


def furnished(numbering: Numbering) -> Furnished:
    """Fills `numbering.model.rooms`."""
    return _Furnishing(numbering).run()


class _Furnishing:
    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._model = numbering.model
        self._drafts: list[Draft] = []
        self._paths: dict[str, int] = {}
        self._aliases: dict[str, int] = {}
        self._kinds: set[str] = set()

    def run(self) -> Furnished:
        roots: dict[int, int] = {}
        for part in self._numbering.parts:
            roots[id(part.scope.graph)] = self._part(part)
        self._adopt_bodies(roots)
        own = [drawn(draft) for draft in self._drafts]
        layouts, notes = arranged([one.graph for one in own])
        for room, one in zip(self._model.rooms, own, strict=True):
            furnish(room, one, layouts[one.graph])
        self._repeats(own)
        self._count()
        return Furnished({**self._aliases, **self._paths}, notes)

    def _part(self, part: Part) -> int:
        """Makes the rooms of one graph, and returns the number of the outermost room."""
        scope = part.scope
        kind = "graph" if not scope.path else "branch" if scope.depth else "function"
        box = Box(scope.path.rpartition("/")[2] or scope.graph.name or "the model", scope.path, kind)
        sources = part.sources()
        how = ways(part.held, sources, part.reads)
        letters = [letter(node) for node in part.held] if how.kind == "block" else []
        grown(box, range(len(part.nodes)), how, letters, sources)
        homes: list[Draft | None] = [None] * len(part.nodes)
        root = self._room(box, None, -1 if kind == "graph" else 0)
        waiting = [(box, root)]
        while waiting:
            room, draft = waiting.pop()
            for item in room.items:
                if isinstance(item, int):
                    homes[item] = draft
                    self._model.nodes.room[part.nodes[item]] = draft.number
                    draft.inner.append((NODE, part.nodes[item]))
                else:
                    inner = self._room(item, draft, draft.number)
                    draft.inner.append((ROOM, inner.number))
                    waiting.append((item, inner))
        values = self._numbering.values
        kinds = self._model.values.kind
        inputs = [values[one] for one in scope.graph.inputs if kinds[values[one]] == GRAPH_INPUT]
        outputs = [values[one] for one in scope.graph.outputs if one in values]
        stored = [one for one in outputs if kinds[one] == CONSTANT]
        lost = {values[one] for one in scope.graph.outputs if one in values and captures.is_undefined(one)}
        stored += [one for one in outputs if one in lost]  # in a broken graph: neither a node nor an input provides it
        root.outputs.update(((OUTPUT, one), None) for one in stored)
        outputs = [one for one in outputs if kinds[one] != CONSTANT and one not in lost]
        placed = [one for one in homes if one is not None]
        connect(Reads(part.nodes, part.reads, part.made, inputs, outputs), placed, root)
        return root.number

    def _room(self, box: Box, around: Draft | None, parent: int) -> Draft:
        number = len(self._drafts)
        path = box.path
        while path in self._paths:
            path += "'"
        self._paths[path] = number
        for other in box.also:
            self._aliases.setdefault(other, number)
        draft = Draft(number, 0 if around is None else around.depth + 1, around)
        self._drafts.append(draft)
        self._model.rooms.append(Room(box.title, box.kind, path, parent))
        return draft

    def _adopt_bodies(self, roots: Mapping[int, int]) -> None:
        """Links nodes with the rooms of their branches, bodies and functions."""
        functions = {
            (part.scope.path): roots[id(part.scope.graph)]
            for part in self._numbering.parts
            if part.scope.in_function and not part.scope.depth
        }
        nodes = self._model.nodes
        for node, number in self._numbering.nodes.items():
            if node.attributes:
                for name, graph in walk.named_subgraphs(node):
                    room = roots[id(graph)]
                    nodes.bodies[number].append((name, room))
                    self._model.rooms[room].parent = nodes.room[number]
            if functions:
                called = f"{node.domain}::{node.op_type}" + (f":{node.overload}" if node.overload else "")
                if called in functions:
                    nodes.bodies[number].append((called, functions[called]))

    def _repeats(self, own: list[Drawn]) -> None:
        """Counts, in each parent, the rooms with equal structure."""
        known: dict[Hashable, int] = {}
        shape = [0] * len(own)
        ops = self._model.nodes.op
        for number in sorted(range(len(own)), key=lambda one: -self._drafts[one].depth):
            items = tuple(
                (kind, ops[ref] if kind == NODE else shape[ref] if kind == ROOM else 0)
                for kind, ref in own[number].keys
            )
            edges = tuple(sorted((one, other) for one, other, _ in own[number].edges))
            shape[number] = known.setdefault((items, edges), len(known))
        groups: dict[tuple[int, int], list[Room]] = {}
        for number, room in enumerate(self._model.rooms):
            if room.kind in ("module", "block"):
                groups.setdefault((room.parent, shape[number]), []).append(room)
        for rooms in groups.values():
            for room in rooms:
                room.repeats = len(rooms)

    def _count(self) -> None:
        """Counts the nodes in every room. Nodes of functions count only in the rooms of the function."""
        rooms = self._model.rooms
        for number in self._model.nodes.room:
            while number >= 0:
                rooms[number].count += 1
                number = rooms[number].parent if rooms[number].kind != "function" else -1


Key = tuple[int, int]
"""Names an item of a room: its kind, and the node, room or value for which it stands."""
Flow = tuple[Key, Key, int]
"""Holds the item that gives a value, the item that reads it, and the value."""


@dataclass(eq=False)
class Draft:
    """Holds a room before its layout. `inner` are the nodes and rooms in it, in the order of the file."""

    number: int
    depth: int
    around: Draft | None
    inner: list[Key] = field(default_factory=list)
    inputs: dict[Key, None] = field(default_factory=dict)
    outputs: dict[Key, None] = field(default_factory=dict)
    flows: dict[Flow, None] = field(default_factory=dict)

    def lead(self, one: Key, other: Key, value: int) -> None:
        """Adds an edge. Also records an input of the room where the edge begins, and an output of the room where it
        ends."""
        for key in (one, other):
            if key[0] == INPUT:
                self.inputs[key] = None
            elif key[0] == OUTPUT:
                self.outputs[key] = None
        self.flows[one, other, value] = None


@dataclass(frozen=True)
class Reads:
    """Holds the values that the nodes of a graph read, and the outputs of the graph. `reads` are values by the number
    of the node in the graph. `made` has, for each value, the number of the node that computes it."""

    nodes: Sequence[int]
    reads: Sequence[Sequence[int]]
    made: Mapping[int, int]
    inputs: Sequence[int]
    outputs: Sequence[int]


def connect(reads: Reads, homes: Sequence[Draft], root: Draft) -> None:
    """Draws the edges of every value, from the node that computes it to all readers, through the rooms around them.
    `homes` are the rooms that show the nodes, `root` is the room of the graph."""
    root.inputs.update(((INPUT, value), None) for value in reads.inputs)

    def start(value: int) -> tuple[Draft, Key]:
        number = reads.made.get(value)
        return (root, (INPUT, value)) if number is None else (homes[number], (NODE, reads.nodes[number]))

    for number, values in enumerate(reads.reads):
        for value in values:
            _lead(*start(value), homes[number], (NODE, reads.nodes[number]), value)
    for value in reads.outputs:
        _lead(*start(value), root, (OUTPUT, value), value)


def _lead(home: Draft, one: Key, target: Draft, other: Key, value: int) -> None:
    while home is not target:
        # Climbs from the deeper side, until both ends are in the same room.
        if home.depth >= target.depth:
            home.lead(one, (OUTPUT, value), value)
            one = (ROOM, home.number)
            assert home.around is not None
            home = home.around
        else:
            target.lead((INPUT, value), other, value)
            other = (ROOM, target.number)
            assert target.around is not None
            target = target.around
    home.lead(one, other, value)


@dataclass(eq=False)
class Drawn:
    """Holds the items and edges of a room, with the graph to lay out. `places` are the numbers of the items in this
    graph."""

    keys: list[Key]
    edges: list[tuple[int, int, int]]
    graph: Graph
    places: list[int]


def drawn(draft: Draft) -> Drawn:
    """Puts the items of a room in an order in which they can run, and replaces long edges by stubs."""
    keys = [*draft.inputs, *_ordered(draft.inner, draft.flows), *draft.outputs]
    number = {key: at for at, key in enumerate(keys)}
    edges = [(number[one], number[other], value) for one, other, value in draft.flows]
    cut = chosen_stubs(len(keys), edges)
    before: dict[int, list[int]] = {}
    kept = []
    for edge in edges:
        one, other, value = edge
        if edge in cut:
            one = len(keys)
            keys.append((STUB, value))
            before.setdefault(other, []).append(one)
        kept.append((one, other, value))
    places = [0] * len(keys)
    at = 0
    for item in range(len(number)):
        # A stub stands directly before its reader, so that its edge crosses no row.
        for one in (*before.get(item, ()), item):
            places[one] = at
            at += 1
    graph = Graph(len(keys), plain_edges([(places[one], places[other], value) for one, other, value in kept]))
    return Drawn(keys, kept, graph, places)


def _ordered(inner: Sequence[Key], flows: Iterable[Flow]) -> list[Key]:
    """Sorts items so that each comes after all items that it reads from. Otherwise keeps the order of the items."""
    place = {key: at for at, key in enumerate(inner)}
    readers: list[list[int]] = [[] for _ in inner]
    waits = [0] * len(inner)
    for start, end in dict.fromkeys((one, other) for one, other, _ in flows):
        if start in place and end in place:
            readers[place[start]].append(place[end])
            waits[place[end]] += 1
    found: list[Key] = []
    ready = [at for at, count in enumerate(waits) if not count]
    while ready:
        at = heapq.heappop(ready)
        found.append(inner[at])
        for other in readers[at]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, other)
    assert len(found) == len(inner), "two rooms depend on each other"
    return found


def furnish(room: Room, own: Drawn, layout: Layout) -> None:
    """Writes items, edges and their places into a room."""
    room.items = Items(
        [kind for kind, _ in own.keys],
        [ref for _, ref in own.keys],
        [layout.rows[place] for place in own.places],
        [layout.x[place] for place in own.places],
    )
    room.edges = Edges(
        [one for one, _, _ in own.edges],
        [other for _, other, _ in own.edges],
        [value for _, _, value in own.edges],
        [layout.bends[own.places[one], own.places[other]] for one, other, _ in own.edges],
    )


# Chooses which edges become stubs: a name beside the reader, in the place of a long line.
# A long edge costs a bend in every row that it crosses, and a picture full of long lines is not legible.

_LONGEST = 24
"""Limits the rows that a drawn edge crosses. A choice: a residual connection around attention crosses 10 to 20."""
_MOST_READERS = 8
"""Limits the readers of a value whose edges are all drawn. Of a value with more readers, only edges into the next row
are drawn. A choice."""
_BENDS_PER_ITEM = 2
"""Counts the bends for each item of a room. Measured with benchmarks/view.py: the time of the layout follows the number
of bends, and 20,000 items with 40,000 bends take a second."""
_FREE_BENDS = 400
"""Counts the bends that every room may have. A choice: rooms of this size take milliseconds."""


def chosen_stubs(count: int, edges: Sequence[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
    """Returns the edges that become stubs. An edge is (item, item, value), and leads to an item with a higher
    number."""
    drawn = [(one, other) for one, other, _ in edges]
    rows = from_end(count, drawn)
    readers: dict[int, set[int]] = {}
    for _, other, value in edges:
        readers.setdefault(value, set()).add(other)
    length = {(one, other): rows[other] - rows[one] for one, other in drawn}
    longest = _affordable(count, list(length.values()))
    return {
        (one, other, value)
        for one, other, value in edges
        if length[one, other] > longest or (len(readers[value]) > _MOST_READERS and length[one, other] > 1)
    }


def _affordable(count: int, lengths: Sequence[int]) -> int:
    """Returns the length of the longest drawn edge, chosen so that the total number of bends stays within the limit."""
    allowed = _FREE_BENDS + _BENDS_PER_ITEM * count
    spent = 0
    for length in sorted(lengths):
        spent += length - 1
        if spent > allowed:
            return min(_LONGEST, length - 1)
    return _LONGEST


def plain_edges(edges: Sequence[tuple[int, int, int]]) -> tuple[Edge, ...]:
    """Returns each pair of connected items once, in order."""
    return tuple(sorted({(one, other) for one, other, _ in edges}))
