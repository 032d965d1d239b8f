"""Makes the rooms of a model, with their contents and layouts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from onnxsmith.graph.structure import captures, walk
from onnxsmith.viewer.layout.arrange import arranged
from onnxsmith.viewer.numbering import Numbering, Part
from onnxsmith.viewer.room_edges import Draft, Drawn, Reads, connect, drawn, furnish
from onnxsmith.viewer.scene import CONSTANT, GRAPH_INPUT, NODE, OUTPUT, ROOM, Room
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
