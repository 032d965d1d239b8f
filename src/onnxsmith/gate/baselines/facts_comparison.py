"""Compares what a model file says of itself with what a baseline recorded: interface, graph, weights, size, nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, UNKNOWN, WORSE
from onnxsmith.base.words import first_few, several, size
from onnxsmith.gate.baselines.change import Change
from onnxsmith.gate.baselines.entry import Entry, StoredPort, paired
from onnxsmith.gate.baselines.facts import Facts
from onnxsmith.gate.baselines.outline import Outline, outline
from onnxsmith.gate.baselines.outline_comparison import changed_weights, differ_first_in_branch, first_difference
from onnxsmith.gate.baselines.settings import ALLOW_SIZE
from onnxsmith.graph.structure.signature import Port

_LITTLE = 1024
"""Sets the bytes by which a file may always grow. A choice: names and documentation of a small file."""
_SHARE = 0.01
"""Sets the share from which growth is shown that is allowed. A choice: smaller ones are shown as 0%."""
_SHOWN = 3
"""Limits the operators and weights that a change names. A choice."""


def interface_changes(entry: Entry, now: Facts) -> Iterator[Change]:
    """Yields what changed in the inputs and the outputs. Names of symbolic dimensions are free: only which of them are
    equal counts."""
    symbols = _Symbols()
    for which in ("inputs", "outputs"):
        for what in _of_ports(which.removesuffix("s"), entry.interface[which], now.ports[which], symbols):
            yield Change("interface", WORSE, what)


class _Symbols:
    """Pairs the names of dimensions before and now, each with one other at most."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def are_same(self, old: Sequence[int | str], new: Sequence[int | str]) -> bool:
        """Whether two shapes are equal, up to the names of their dimensions."""
        return len(old) == len(new) and all(self._is_same(a, b) for a, b in zip(old, new, strict=True))

    def _is_same(self, old: int | str, new: int | str) -> bool:
        if isinstance(old, int) or isinstance(new, int):
            return old == new
        return self._new.setdefault(old, new) == new and self._old.setdefault(new, old) == old


def _of_ports(noun: str, before: Sequence[StoredPort], after: Sequence[StoredPort], symbols: _Symbols) -> Iterator[str]:
    old, new = [one.name for one in before], [one.name for one in after]
    if set(old) == set(new) and old != new:
        yield f"the {noun}s have another order: {', '.join(old)} became {', '.join(new)}"
    names, by_name = paired(old, new), {one.name: one for one in after}
    yield from (f"the {noun} {a!r} is now called {b!r}" for a, b in names.items() if a != b)
    yield from (f"the {noun} {one!r} was removed" for one in old if one not in names)
    yield from (f"the {noun} {one!r} is new" for one in new if one not in names.values())
    for a, b in [(one, by_name[names[one.name]]) for one in before if one.name in names]:
        if not _are_same(a, b, symbols):
            yield f"the {noun} {b.name!r} was {_type(a)}, and now is {_type(b)}"
        elif a.default != b.default:
            yield f"the {noun} {b.name!r} {'no longer has a default value' if a.default else 'now has a default value'}"


def _are_same(old: StoredPort, new: StoredPort, symbols: _Symbols) -> bool:
    if (old.dtype, old.kind, old.keys, old.many) != (new.dtype, new.kind, new.keys, new.many):
        return False
    if old.shape is None or new.shape is None:
        return old.shape is new.shape
    return symbols.are_same(old.shape, new.shape)


def _type(port: StoredPort) -> str:
    shape = None if port.shape is None else tuple(port.shape)
    return str(Port(port.name, port.dtype, shape, port.kind, port.default, port.keys, port.many))


def content_changes(
    entry: Entry, now: Facts, was: Outline | None, *, is_worse: bool, is_unseen: bool
) -> Iterator[Change]:
    """Yields the changes of graph and weights. They are worse if the numbers are. `was` is the recorded outline, which
    tells where they are. `is_unseen` says that all numbers are equal to the bit: then no recorded input reads the
    weights that have other values, or perhaps takes the branch that changed, and nothing is known of them."""
    result = WORSE if is_worse else CHANGED
    own, recorded = now.digests, entry.digests
    graph = recorded.get("graph") not in (own.graph, now.moved.graph)
    read = not graph and recorded.get("whole") not in (own.whole, now.moved.whole)
    weights = read or recorded.get("weights") != own.weights  # the same weights in other places count, too
    names_of = entry.names("inputs"), entry.names("outputs")
    now_outline = outline(now.model, *names_of) if was is not None and (graph or weights) else None
    if graph:
        operators = {
            op: (entry.nodes.get(op, 0), now.nodes.get(op, 0)) for op in sorted(entry.nodes.keys() | now.nodes.keys())
        }
        moved = [f"{op} {a} → {b}" for op, (a, b) in operators.items() if a != b]
        said = first_few(moved, _SHOWN) if moved else "the same operators with other attributes, operands or opset"
        place = first_difference(was, now_outline) if was and now_outline else ""
        what = f"the graph changed: {said}{f'; {place}' if place else ''}"
        if is_unseen and was and now_outline and differ_first_in_branch(was, now_outline):
            yield Change(
                "graph",
                UNKNOWN,
                f"{what}; the change is in a branch of an If, and no recorded input shows a difference",
            )
        else:
            yield Change("graph", result, what)
    if weights:
        names = changed_weights(was, now_outline) if was and now_outline else []
        where = f": {first_few(names, _SHOWN, '; ')}" if names else ""
        if not graph and not read:
            yield Change("weights", CHANGED, "only weights that no node reads have changed")
        elif is_unseen and not graph:
            yield Change(
                "weights", UNKNOWN, f"weights have other values, but no recorded input shows a difference{where}"
            )
        else:
            yield Change("weights", result, f"other values{where}")
    if not graph and not weights and recorded.get("file") != now.file:
        yield Change("file", CHANGED, "the bytes of the file changed, but its graph and its weights did not")


def size_changes(entry: Entry, now: Facts, allow: float | None) -> Iterator[Change]:
    """Yields the changes of the size of the file, and of the number of nodes. Without `allow`, a file may grow by
    `ALLOW_SIZE`, and by a little in any case."""
    before, after = entry.size, sum(now.bytes.values())
    most, little = (ALLOW_SIZE, _LITTLE) if allow is None else (allow, 0)
    grown = f"{size(before)} became {size(after)}, {after / before - 1:.0%} more" if before else ""
    if before and after > before * (1 + most) and after - before > little:
        yield Change("size", WORSE, f"{grown}; only {most * 100:.3g}% more is allowed")
    elif before and after > before * (1 + _SHARE) and after - before > _LITTLE:
        yield Change("size", CHANGED, f"{grown}, which is allowed")
    elif after < before * (1 - most):
        yield Change("size", BETTER, f"{size(before)} became {size(after)}")
    old, new = entry.node_count, sum(now.nodes.values())
    if old != new:
        yield Change("nodes", WORSE if new > old else BETTER, f"{several(old, 'node')} became {new:,}")
