"""Compares what a model file says of itself with what a baseline recorded: interface, graph, weights, size, nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onnxsmith.base.report.parts._text import size
from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, WORSE
from onnxsmith.base.words import first_few, several
from onnxsmith.gate.baselines.change import Change
from onnxsmith.gate.baselines.entry import Entry, StoredPort, paired
from onnxsmith.gate.baselines.facts import Facts

_SHOWN = 3
"""Limits the operators that a change names. A choice."""


def interface_changes(entry: Entry, now: Facts) -> Iterator[Change]:
    """Yields what changed in the inputs and the outputs. Names of symbolic dimensions are free: only which of them are
    equal counts."""
    before = _with_symbols(entry.interface)
    after = _with_symbols(now.ports)
    for which in ("inputs", "outputs"):
        for what in _of_ports(which.removesuffix("s"), before[which], after[which]):
            yield Change("interface", WORSE, what)


def _with_symbols(ports: dict[str, list[StoredPort]]) -> dict[str, list[StoredPort]]:
    """Returns the ports with numbered symbols, `#1`, in place of the names of dimensions. The inputs are taken in the
    order of their names, so that a permutation changes no number."""
    known: dict[str, str] = {}
    for port in (*sorted(ports["inputs"], key=lambda one: one.name), *ports["outputs"]):
        for dim in port.shape or []:
            if isinstance(dim, str):
                known.setdefault(dim, f"#{len(known) + 1}")
    return {
        which: [
            one
            if one.shape is None
            else replace(one, shape=[known[dim] if isinstance(dim, str) else dim for dim in one.shape])
            for one in held
        ]
        for which, held in ports.items()
    }


def _of_ports(noun: str, before: Sequence[StoredPort], after: Sequence[StoredPort]) -> Iterator[str]:
    old, new = [one.name for one in before], [one.name for one in after]
    if set(old) == set(new) and old != new:
        yield f"the {noun}s have another order: {', '.join(old)} became {', '.join(new)}"
    names, by_name = paired(old, new), {one.name: one for one in after}
    yield from (f"the {noun} {a!r} is called {b!r}" for a, b in names.items() if a != b)
    yield from (f"the {noun} {one!r} is gone" for one in old if one not in names)
    yield from (f"the {noun} {one!r} is new" for one in new if one not in names.values())
    pairs = [(one, by_name[names[one.name]]) for one in before if one.name in names]
    for a, b in pairs:
        if _type(a) != _type(b):
            yield f"the {noun} {b.name!r} was {_type(a)} and is {_type(b)}"
        elif a.default != b.default:
            yield f"the {noun} {b.name!r} {'has no default any more' if a.default else 'has a default'}"


def _type(port: StoredPort) -> str:
    dims = "?" if port.shape is None else ",".join(map(str, port.shape))
    text = f"map({port.keys}, {port.dtype})" if port.keys else f"{port.dtype}[{dims}]"
    text = f"sequence({text})" if port.many else text
    return text if port.kind in ("tensor", "map") else f"{port.kind}({text})"


def content_changes(entry: Entry, now: Facts, *, is_worse: bool) -> Iterator[Change]:
    """Yields the changes of graph and weights. They are worse if the numbers are."""
    result = WORSE if is_worse else CHANGED
    own, recorded = now.digests, entry.digests
    graph = recorded.get("graph") not in (own.graph, now.moved.graph)
    weights = recorded.get("weights") != own.weights
    if not graph and not weights and recorded.get("whole") not in (own.whole, now.moved.whole):
        weights = True  # the same tensors in other places
    if graph:
        operators = {
            op: (entry.nodes.get(op, 0), now.nodes.get(op, 0)) for op in sorted(entry.nodes.keys() | now.nodes.keys())
        }
        moved = [f"{op} {a} → {b}" for op, (a, b) in operators.items() if a != b]
        said = first_few(moved, _SHOWN) if moved else "the same operators with other attributes, operands or opset"
        yield Change("graph", result, f"the graph changed: {said}")
    if weights:
        yield Change("weights", result, "the weights have other values" if not graph else "the weights changed")
    if not graph and not weights and recorded.get("file") != now.file:
        yield Change("file", CHANGED, "the bytes of the file changed, its graph and its weights did not")


def size_changes(entry: Entry, now: Facts, allow: float) -> Iterator[Change]:
    """Yields the changes of the size of the file, and of the number of nodes."""
    before, after = entry.size, sum(now.bytes.values())
    if before and after > before * (1 + allow):
        what = f"{size(before)} became {size(after)}, {after / before - 1:.0%} more; {allow:.0%} is allowed"
        yield Change("size", WORSE, what)
    elif after < before * (1 - allow):
        yield Change("size", BETTER, f"{size(before)} became {size(after)}")
    old, new = entry.node_count, sum(now.nodes.values())
    if old != new:
        yield Change("nodes", WORSE if new > old else BETTER, f"{several(old, 'node')} became {new:,}")
