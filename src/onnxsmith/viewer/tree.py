"""Divides a graph into rooms: by torch module, by the scopes in node names, or by repeated blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.walk import op_name
from onnxsmith.viewer.blocks import Block, folded
from onnxsmith.viewer.box_partition import divided

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
