"""Divides a graph into rooms: by torch module, by the scopes in node names, or by repeated blocks.

The nodes are read as a text in the order of the file, with one letter for each kind of node. A block that repeats is a
piece of the text that follows itself. All such pieces are found in one walk over the text: if a short window of letters
equals the window `period` letters before, again and again, the block repeats with this period.

A module that is left and entered again depends on the nodes between. Such a module becomes two parts, or more if
needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.walk import op_name

_SMALLEST = 3
"""Counts the fewest nodes of a module that gets a room. A choice: a Linear of MatMul and Add is clearer as two
nodes."""
_DEEPEST = 24
"""Limits the levels of nested modules that get rooms. A choice that bounds the cost of odd names."""
_BLOCKS = 12
"""Counts the fewest nodes of a graph in which repeats are searched. A choice: fewer nodes are seen at a glance."""

Path = tuple[str, ...]


@dataclass(eq=False)
class Box:
    """Describes a room before it is made: its title, its path in links, and its items in the order of the file (nodes
    by index, and boxes)."""

    title: str
    path: str
    kind: str
    items: list[Box | int] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    """Lists the paths of other modules with the same nodes, which therefore have no room of their own."""


@dataclass(frozen=True)
class Ways:
    """Says how the nodes of a graph are divided. `paths` are the steps to each node; each step is a whole path of a
    module or scope."""

    kind: str
    paths: list[Path]


def ways(nodes: Sequence[ir.Node], sources: Sequence[Sequence[int]], reads: Sequence[Sequence[int]]) -> Ways:
    """Returns the modules or scopes of each node. `kind` is `module`, `scope`, or `block` if the graph names neither.
    The scope of a node is the part of its name before the last `/`. Scopes are used if at least half of the names have
    one. `sources` are the nodes that each node reads from, `reads` the values without constants."""
    calls = [provenance.calls(node)[0] for node in nodes]
    modules: list[Path | None] = [tuple(step for step in one if step)[:_DEEPEST] if one else None for one in calls]
    if any(modules):
        return Ways("module", _completed(modules, sources, reads))
    if 2 * sum("/" in (node.name or "").strip("/") for node in nodes) >= max(len(nodes), 1):
        scopes = [_scopes(node.name) if node.name and "/" in node.name else None for node in nodes]
        return Ways("scope", _completed(scopes, sources, reads))
    return Ways("block", [()] * len(nodes))


def _completed(
    paths: Sequence[Path | None], sources: Sequence[Sequence[int]], reads: Sequence[Sequence[int]]
) -> list[Path]:
    """Finds a module for each node of unknown origin, for example from an optimiser: the module around all nodes that
    it reads from and all its readers. A node at an end of the graph gets no module. A node that computes only from
    stored tensors, such as the Identity or Cast of a weight, gets the module around its readers."""
    stored: list[bool] = []
    for own, made in zip(reads, sources, strict=True):
        stored.append(len(own) == len(made) and all(stored[one] for one in made))
    known = [None if of_stored and not path else path for path, of_stored in zip(paths, stored, strict=True)]
    ahead, behind = list(known), list(known)
    for at, read in enumerate(sources):
        # Two walks: forwards from the sources of a node, then backwards from its readers.
        if known[at] is None:
            ahead[at] = _around(ahead[one] for one in read)
    readers: list[list[int]] = [[] for _ in known]
    for at in reversed(range(len(known))):
        if known[at] is None:
            behind[at] = _around(behind[one] for one in readers[at])
        for one in sources[at]:
            readers[one].append(at)
    found = []
    for before, after, of_stored in zip(ahead, behind, stored, strict=True):
        if after is not None and (of_stored or before is not None):
            found.append(after if of_stored else _around((before, after)) or ())
        else:
            found.append(())
    return found


def _around(paths: Iterable[Path | None]) -> Path | None:
    """Returns the longest common beginning of the paths; None if no path is known."""
    common: Path | None = None
    for path in paths:
        if common is None or path is None:
            common = path if common is None else common
            continue
        length = next((at for at, (a, b) in enumerate(zip(common, path, strict=False)) if a != b), len(common))
        common = common[: min(length, len(path))]
    return common


def _scopes(name: str) -> Path:
    steps = [step for step in name.split("/") if step][:-1][:_DEEPEST]
    return tuple("/".join(steps[: depth + 1]) for depth in range(len(steps)))


def grown(
    box: Box, nodes: Sequence[int], how: Ways, letters: Sequence[Hashable], sources: Sequence[Sequence[int]]
) -> None:
    """Fills a box with its nodes and inner boxes. `nodes` are in the order of the file, and `sources` are the nodes
    that each node reads from. All node numbers, also the indices of `letters` and `how.paths`, count the nodes of the
    graph."""
    if how.kind == "block":
        if len(nodes) < _BLOCKS:
            box.items = list(nodes)
        else:
            box.items = _boxes(folded(nodes, letters, sources), box.path)
        return
    waiting = [(box, list(nodes), 0)]
    while waiting:
        room, held, depth = waiting.pop()
        keys: dict[int, Hashable | None] = {
            node: how.paths[node][depth] if len(how.paths[node]) > depth else None for node in held
        }
        names = set(keys.values())
        if len(names) == 1 and None not in names:  # if a single module holds everything, show its contents instead
            room.also.append(str(names.pop()))
            waiting.append((room, held, depth + 1))
            continue
        parts = divided(held, keys, sources)
        large = [part for part in parts if part.key is not None and len(part.nodes) >= _SMALLEST]
        number: dict[Hashable, int] = {}
        total: dict[Hashable, int] = {}
        for part in large:
            total[part.key] = total.get(part.key, 0) + 1
        for part in parts:
            if part.key is None or len(part.nodes) < _SMALLEST:
                room.items += part.nodes
                continue
            path = str(part.key)
            number[path] = number.get(path, 0) + 1
            again = f" ({number[path]} of {total[path]})" if total[path] > 1 else ""
            inner = Box(_title(path, how.kind) + again, path + again, "module")
            room.items.append(inner)
            waiting.append((inner, part.nodes, depth + 1))


def _title(path: str, kind: str) -> str:
    """Returns the last steps of a path. An index keeps the name of its list, as in `layer.3`, because `3` alone says
    little."""
    steps = path.split("/" if kind == "scope" else ".")
    shown = steps[-2:] if steps[-1].isdigit() else steps[-1:]
    return ".".join(shown)


def _boxes(items: Sequence[Block | int], path: str) -> list[Box | int]:
    made: list[Box | int] = []
    kinds = 0
    for item in items:
        if isinstance(item, int):
            made.append(item)
            continue
        kinds += item.number == 1
        name = f"block {chr(ord('A') + kinds - 1)}" if kinds <= 26 else f"block {kinds}"
        inner = Box(f"{name} ({item.number} of {item.of})", f"{path}/{name}.{item.number}".lstrip("/"), "block")
        inner.path = inner.path.replace(" ", "-")
        inner.items = _boxes(item.items, inner.path)
        made.append(inner)
    return made


def letter(node: ir.Node) -> Hashable:
    """Returns the properties that equal nodes of repeated blocks share: the operator, which operands are present, and
    the number of results."""
    return op_name(node), tuple(value is not None for value in node.inputs), len(node.outputs)


_WINDOW = 4
"""Counts the equal letters from which two places are compared. A choice: shorter windows repeat by chance."""
_SHORTEST = 3
"""Counts the fewest nodes of a block that gets a box. A choice."""
_REPEATED = 8
"""Counts the fewest nodes after the first block that have to repeat the block. A choice: unrelated nodes repeat shorter
pieces by chance."""
_LEVELS = 4
"""Limits how often blocks are searched among the blocks found so far. A choice: stages of layers of branches."""


@dataclass(frozen=True)
class Block:
    """Holds consecutive items, nodes or blocks, that are repeat `number` of `of` repeats."""

    items: tuple[Block | int, ...]
    number: int
    of: int


def folded(nodes: Sequence[int], letters: Sequence[Hashable], sources: Sequence[Sequence[int]]) -> list[Block | int]:
    """Returns the nodes with their repeats as blocks, which may hold blocks. `letters` and `sources` are the kind of
    each node and the nodes that it reads from, by node. The nodes stand in an order in which they can run. So
    consecutive nodes never depend on each other in a circle, and a block can be one box."""
    known: dict[Hashable, int] = {}
    items: list[Block | int] = list(nodes)
    text = [known.setdefault(letters[node], len(known)) for node in nodes]
    place = {node: at for at, node in enumerate(nodes)}
    ends = list(range(1, len(nodes) + 1))
    """Lists the position after the last node of each item."""
    crossing = _crossing([[place[one] for one in sources[node] if one in place] for node in nodes])
    for _ in range(_LEVELS):
        found = [
            (start, period, count)
            for start, period, count in _repeats(text, [crossing[end - 1] for end in ends])
            if ends[start + period * count - 1] - ends[start + period - 1] >= _REPEATED
        ]
        if not found:
            break
        items, text, ends = _replaced(items, text, ends, found, known)
    return items


def _crossing(sources: Sequence[Sequence[int]]) -> list[int]:
    """Counts, for each position, the values that are computed before it and read after it."""
    last: dict[int, int] = {}
    for at, read in enumerate(sources):
        for one in read:
            last[one] = at
    changes = [0] * (len(sources) + 1)
    for one, at in last.items():
        changes[one] += 1
        changes[at] -= 1
    total, found = 0, []
    for change in changes[:-1]:
        total += change
        found.append(total)
    return found


def _repeats(text: Sequence[int], cuts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Returns the repeats as start, period and number, from left to right and without overlap."""
    found: list[tuple[int, int, int]] = []
    seen: dict[tuple[int, ...], int] = {}
    start = period = 0
    end = 0
    """Holds the end of the repeat that was chosen last."""
    for at in range(len(text) + 1):
        window = tuple(text[at : at + _WINDOW])
        gap = at - seen[window] if window in seen and len(window) == _WINDOW else 0
        if gap != period:
            if period >= _SHORTEST:
                first, last = max(start - period, end), at - 1 + _WINDOW
                taken = _aligned(first, min(last, len(text)), period, cuts)
                if taken is not None:
                    found.append(taken)
                    end = taken[0] + taken[1] * taken[2]
            start, period = at, gap
        seen[window] = at
    return found


def _aligned(first: int, last: int, period: int, cuts: Sequence[int]) -> tuple[int, int, int] | None:
    """Moves the start of a repeat to the position at which the fewest values cross from one block into the next."""
    if last - first < 2 * period:
        return None
    most = (last - first) // period
    slack = min(last - first - most * period, period - 1)
    if most > 2:  # one block less leaves every alignment open
        slack, most = period - 1, most if slack == period - 1 else most - 1

    def cost(shift: int) -> int:
        return sum(cuts[first + shift + period * block - 1] for block in range(1, most + 1))

    shift = min(range(slack + 1), key=cost)
    return first + shift, period, (last - first - shift) // period


def _replaced(
    items: Sequence[Block | int],
    text: Sequence[int],
    ends: Sequence[int],
    found: Sequence[tuple[int, int, int]],
    known: dict[Hashable, int],
) -> tuple[list[Block | int], list[int], list[int]]:
    """Replaces the repeats by blocks."""
    made: list[Block | int] = []
    letters: list[int] = []
    last: list[int] = []
    at = 0
    for start, period, count in [*found, (len(items), 0, 0)]:
        made += items[at:start]
        letters += text[at:start]
        last += ends[at:start]
        for number in range(count):
            first = start + number * period
            made.append(Block(tuple(items[first : first + period]), number + 1, count))
            letters.append(known.setdefault(("block", tuple(text[first : first + period])), len(known)))
            last.append(ends[first + period - 1])
        at = start + period * count
    return made, letters, last


_STEPS_PER_EDGE = 40
"""Limits the steps of the search for dependencies, for each edge of the graph. After these steps, every re-entered
module becomes a new part, which needs no search. A choice: real models need 2 at most, and the work stays linear."""


@dataclass(eq=False)
class Part:
    """Holds nodes with one key, in the order of the graph. A node without a key is a part of its own."""

    key: Hashable
    nodes: list[int] = field(default_factory=list)


def divided(nodes: Sequence[int], keys: Mapping[int, Hashable | None], sources: Sequence[Sequence[int]]) -> list[Part]:
    """Divides `nodes`, which stand in an order in which they can run. Nodes of one key form one part. Nodes of one key
    form several parts if an outside node depends on an earlier part and feeds a later part. `sources` are the nodes
    that each node reads from; nodes outside `nodes` are ignored. Returns the parts in the order of their first
    nodes."""
    work = _Division(sources)
    for node in nodes:
        work.add(node, keys.get(node))
    return work.parts


class _Division:
    """Keeps an order of the parts in which they can run, as in D. J. Pearce, P. H. J. Kelly, "A dynamic topological
    sort algorithm for directed acyclic graphs" (2006). A node joins a part unless this would close a cycle."""

    def __init__(self, sources: Sequence[Sequence[int]]) -> None:
        self.parts: list[Part] = []
        self._sources = sources
        self._part_of: dict[int, int] = {}
        self._last: dict[Hashable, int] = {}
        self._after: list[set[int]] = []
        self._before: list[set[int]] = []
        self._rank: list[int] = []
        self._budget = 1000

    def add(self, node: int, key: Hashable | None) -> None:
        read = {self._part_of[source] for source in self._sources[node] if source in self._part_of}
        self._budget += _STEPS_PER_EDGE * (1 + len(read))
        part = self._last.get(key, -1) if key is not None else -1
        if part < 0 or not self._joins(part, read - {part}):
            part = len(self.parts)
            self.parts.append(Part(key))
            self._after.append(set())
            self._before.append(set())
            self._rank.append(part)
            if key is not None:
                self._last[key] = part
            for other in read:
                self._link(other, part)
        self.parts[part].nodes.append(node)
        self._part_of[node] = part

    def _link(self, one: int, other: int) -> None:
        self._after[one].add(other)
        self._before[other].add(one)

    def _joins(self, part: int, read: set[int]) -> bool:
        """Lets a part read from the parts `read`, if none of these depends on the part. Returns whether the part now
        reads from them."""
        for other in sorted(read - self._before[part], key=self._rank.__getitem__):
            # The order already has `other` before the part: no path can lead from the part to it.
            if self._rank[other] < self._rank[part]:
                continue
            # A path from the part to `other` would close a cycle; else both sides change places in the order.
            behind = self._reached(part, self._after, 0, self._rank[other])
            if behind is None or other in behind:
                return False
            ahead = self._reached(other, self._before, self._rank[part], len(self.parts))
            if ahead is None:
                return False
            self._reorder([*sorted(ahead, key=self._rank.__getitem__), *sorted(behind, key=self._rank.__getitem__)])
        for other in read:
            self._link(other, part)
        return True

    def _reached(self, start: int, ways: Sequence[set[int]], least: int, most: int) -> set[int] | None:
        """Returns the parts that can be reached from `start`, at ranks from `least` to `most`; None if the budget of
        steps is spent."""
        found, waiting = {start}, [start]
        while waiting:
            for one in ways[waiting.pop()]:
                self._budget -= 1
                if one not in found and least <= self._rank[one] <= most:
                    found.add(one)
                    waiting.append(one)
            if self._budget < 0:
                return None
        return found

    def _reorder(self, wanted: Sequence[int]) -> None:
        ranks = sorted(self._rank[one] for one in wanted)
        for one, rank in zip(wanted, ranks, strict=True):
            self._rank[one] = rank
