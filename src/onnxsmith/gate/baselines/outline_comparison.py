"""Names what differs between two outlines: the first node, and the weights with other values."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from onnxsmith.base.words import several, told_apart
from onnxsmith.gate.baselines.outline import BLOCKS, NodeLine, Outline, WeightUse

_SMALLEST = 5e-4
"""Sets the least change of a norm that is named. A choice: it is shown with one decimal."""


def first_difference(old: Outline, new: Outline) -> str:
    """Says where the graphs begin to differ: the operator set, or the first node; "" if nothing is known of it."""
    for domain in sorted(old.opsets.keys() & new.opsets.keys()):
        if old.opsets[domain] != new.opsets[domain]:
            return f"opset {domain or 'ai.onnx'} {old.opsets[domain]} → {new.opsets[domain]}"
    was, now = _first_without_partner(old.nodes, new.nodes), _first_without_partner(new.nodes, old.nodes)
    if now is None:
        return f"{_named(was)} is gone" if was is not None else ""
    if was is None:
        return f"{_named(now)} is new"
    if was.op != now.op:
        return f"the first node that differs is {_named(now)}, which was {_named(was)}"
    names = dict.fromkeys((*was.attributes, *now.attributes))
    changed = [one for one in names if was.attributes.get(one) != now.attributes.get(one)]
    said = ", ".join(
        f"{one} {was.attributes.get(one, 'unset')} → {now.attributes.get(one, 'unset')}" for one in changed
    )
    return f"the first node that differs is {_named(now)}{f': {said}' if said else ' (other operands)'}"


def differ_first_in_branch(old: Outline, new: Outline) -> bool:
    """Whether the graphs begin to differ in a branch of an If."""
    firsts = _first_without_partner(old.nodes, new.nodes), _first_without_partner(new.nodes, old.nodes)
    return any(one is not None and one.in_branch for one in firsts)


def _first_without_partner(nodes: Sequence[NodeLine], others: Sequence[NodeLine]) -> NodeLine | None:
    left = Counter(one.key for one in others)
    for one in nodes:
        if not left[one.key]:
            return one
        left[one.key] -= 1
    return None


def _named(node: NodeLine) -> str:
    return f"{node.op} {node.name}{f' ({node.module})' if node.module else ''}"


def changed_weights(old: Outline, new: Outline) -> list[str]:
    """Names the weights with other values, each once, and says how many values changed as far as checksums tell."""
    found = {now.name: _said(was, now) for was, now in _changed_pairs(old.weights, new.weights)}
    return list(found.values())


def _changed_pairs(old: Sequence[WeightUse], new: Sequence[WeightUse]) -> Iterator[tuple[WeightUse, WeightUse]]:
    """Yields the weights with other values as they were and are. Those of one place belong together; where the graph
    changed, those of one name and size."""
    places, moved = _by_place(old), []
    for key, uses in _by_place(new).items():
        was, now = _without_equal(places.pop(key, []), uses)
        was.sort(key=lambda one: one.name not in {other.name for other in now})
        now.sort(key=lambda one: one.name not in {other.name for other in was})
        yield from zip(was, now, strict=False)
        moved += now[len(was) :]
    gone, moved = _without_equal([one for held in places.values() for one in held], moved)
    by_name = {(one.name, one.size): one for one in gone}
    yield from ((by_name[one.name, one.size], one) for one in moved if (one.name, one.size) in by_name)


def _by_place(some: Sequence[WeightUse]) -> dict[str, list[WeightUse]]:
    found: defaultdict[str, list[WeightUse]] = defaultdict(list)
    for one in some:
        found[one.key].append(one)
    return found


def _without_equal(old: Sequence[WeightUse], new: Sequence[WeightUse]) -> tuple[list[WeightUse], list[WeightUse]]:
    same = Counter(one.digest for one in old) & Counter(one.digest for one in new)

    def left(some: Sequence[WeightUse]) -> list[WeightUse]:
        count, kept = same.copy(), []
        for one in some:
            if count[one.digest]:
                count[one.digest] -= 1
            else:
                kept.append(one)
        return kept

    return left(old), left(new)


def _said(was: WeightUse, now: WeightUse) -> str:
    name = f"{now.name!r} ({now.node})"
    before, after = _checks(was), _checks(now)
    if was.size != now.size:
        return f"{name}: {several(was.size, 'value')} became {now.size:,}"
    if not len(before) or len(before) != len(after):
        return f"{name}: some of {several(now.size, 'value')}"
    count, of_block = int((before != after).sum()), -(-now.size // BLOCKS)
    if of_block == 1 and count == 1:
        return f"{name}: 1 of {several(now.size, 'value')}{_moved(was, now)}"
    more = "" if of_block == 1 else f" at least, in {count} of {len(after):,} blocks"
    return f"{name}: {count} of {several(now.size, 'value')}{more}{_amount(was, now)}"


def _checks(one: WeightUse) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    return np.frombuffer(base64.b64decode(one.checks), "<u2")


def _moved(was: WeightUse, now: WeightUse) -> str:
    """Says how far the only changed value moved: the sums of the values and of their squares are two equations for
    it."""
    if was.total is None or now.total is None or was.norm is None or now.norm is None or was.total == now.total:
        return ""
    apart = now.total - was.total
    both = (now.norm**2 - was.norm**2) / apart
    before, after = (both - apart) / 2, (both + apart) / 2
    return f", {' → '.join(told_apart(before, after, digits=3))}"


def _amount(was: WeightUse, now: WeightUse) -> str:
    """Says how far the norm moved, if it did."""
    if was.norm is None or now.norm is None or not was.norm:
        return ""
    moved = now.norm / was.norm - 1
    return f", norm {moved:+.1%}" if abs(moved) >= _SMALLEST else ""
