"""Finds the channels of a graph: elements that can only be removed together. Follows them operator by operator."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.graph.structure import captures, walk
from onnxsmith.precision.pruning.channel_links import Indices, Links, Sizes, Slot, is_weight
from onnxsmith.precision.pruning.operators.base import Operator

Channel = tuple[tuple[Slot, Indices], ...]
"""The elements of one channel, by axis."""


@dataclass(frozen=True)
class Group:
    """Channels along the same axes, any of which may be removed. They are output channels of the nodes `layers`;
    `products` are the axes of weights over which their readers sum. `reason` says why all channels stay; "" if they may
    be removed."""

    layers: tuple[str, ...]
    channels: tuple[Channel, ...]
    products: tuple[Slot, ...]
    reason: str = ""
    each: tuple[int, ...] = ()
    """How many output channels of each layer form one channel of the group."""
    is_unread: bool = False
    """Whether no graph output depends on the channels."""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Returns the axes of the group."""
        return tuple(slot for slot, _ in self.channels[0])

    @property
    def count(self) -> int:
        """Returns the number of output channels of the layers: the unit of reports."""
        return len(self.channels) * sum(self.each)


@dataclass(frozen=True)
class Channels:
    """All groups of a graph, including those that stay."""

    groups: tuple[Group, ...]
    links: Links

    @property
    def free(self) -> tuple[Group, ...]:
        """Returns the groups whose channels may be removed."""
        return tuple(group for group in self.groups if not group.reason)

    @property
    def fixed(self) -> tuple[Group, ...]:
        """Returns the groups that stay."""
        return tuple(group for group in self.groups if group.reason)

    def count(self, some: Iterable[Channel]) -> int:
        """Returns how many output channels of layers these channels of groups are: the unit of reports."""
        return sum(len(at) for channel in some for slot, at in channel if slot in self.links.opened)


def channels(model: ir.Model, keep: Iterable[str] = ()) -> Channels:
    """Finds the channels of the main graph. The model must have inferred shapes, and its constants must be
    initializers. The channels of layers in `keep` stay.

    A reshape that divides an axis (into heads, or into the groups of a shuffle) can be followed along either part. Each
    kind of division is followed along the part that frees the most weights, by default the outermost part.
    """
    sizes = {value.name or "": _elements(value) for value in model.graph.initializers.values()}
    kept, pairs = frozenset(keep), twins(model)
    return _improved(lambda views: _grouped(linked(model, views, kept, pairs)), sizes, {}, frozenset())[1]


Views = dict[tuple[Sizes, Sizes], int]


def _improved(
    follow: Callable[[Views], Channels],
    sizes: dict[str, int],
    views: Views,
    seen: frozenset[tuple[Sizes, Sizes]],
    best: Channels | None = None,
) -> tuple[Views, Channels]:
    """Decides the new divisions one after the other. Returns the best ways to follow them, and the channels found with
    these. A way may lead to further divisions, which are decided before the way is judged."""
    best = follow(views) if best is None else best
    known = seen | set(best.links.divided)
    for division, ways in list(best.links.divided.items()):
        for place in range(ways) if division not in seen else ():
            # An axis of size 1 holds no channels to choose from.
            if division[1][place] == 1:
                continue
            found_views = {**views, division: place}
            found = follow(found_views)
            if len(seen) < _DEEPEST and set(found.links.divided) - known:
                found_views, found = _improved(follow, sizes, found_views, known, found)
            if _freed(found, sizes) > _freed(best, sizes) * _BETTER:
                views, best = found_views, found
    return views, best


_DEEPEST = 12
"""Once this many divisions were seen, the divisions that a way leads to are no longer decided. A choice: each way is a
walk over the graph."""
_BETTER = 1.01
"""The factor by which another way to follow a division has to be better. A choice."""


def _elements(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.size


def _freed(found: Channels, sizes: dict[str, int]) -> float:
    """Counts the elements of weights that can become smaller. Groups of few large channels count less, because a share
    of few channels is often none."""
    total = 0.0
    for group in found.free:
        for place, (name, axis) in enumerate(group.slots):
            if name in sizes:
                covered = sum(len(channel[place][1]) for channel in group.channels)
                total += (1 - 1 / len(group.channels)) * sizes[name] * covered / found.links.slots[name, axis]
    return total


def _grouped(links: Links) -> Channels:
    begins: dict[Slot, int] = {}
    count = 0
    for slot, size in links.slots.items():
        begins[slot] = count
        count += size
    labels = _components(count, [(begins[a] + at, begins[b] + to) for a, at, b, to in links.ties])
    pins: dict[int, str] = {}
    for slot, reason in links.pins:
        for label in np.unique(labels[begins[slot] : begins[slot] + links.slots[slot]]):
            pins.setdefault(int(label), reason)
    members: dict[int, list[tuple[Slot, Indices]]] = {}
    for slot, size in links.slots.items():
        own = labels[begins[slot] : begins[slot] + size]
        if not size:  # a weight without elements has no channels
            continue
        order = np.argsort(own, kind="stable")
        bounds = np.flatnonzero(np.diff(own[order])) + 1
        for part in np.split(order, bounds):
            members.setdefault(int(own[part[0]]), []).append((slot, part))
    return Channels(tuple(_groups(links, members, pins)), links)


def _groups(links: Links, members: dict[int, list[tuple[Slot, Indices]]], pins: dict[int, str]) -> Iterator[Group]:
    """Yields the groups of channels with the same axes. Channels that no layer computes stay."""
    by_axes: dict[tuple[object, ...], list[int]] = {}
    for label, channel in members.items():
        if any(slot in links.opened for slot, _ in channel):
            by_axes.setdefault(tuple((slot, len(at)) for slot, at in channel), []).append(label)
    for labels in by_axes.values():
        free = [label for label in labels if label not in pins]
        reason = Counter(pins[label] for label in labels if label in pins).most_common(1)
        for some, why in ((free, ""), ([one for one in labels if one in pins], reason[0][0] if reason else "")):
            if some:
                made = tuple(tuple(members[label]) for label in some)
                yield _group(links, made, why)


def _group(links: Links, made: tuple[Channel, ...], why: str) -> Group:
    slots = [slot for slot, _ in made[0]]
    layers = tuple(dict.fromkeys(links.opened[slot] for slot in slots if slot in links.opened))
    lonely = len(made) == 1 and not why
    reason = (
        "all channels of the layer can only be removed together"
        if lonely and sum(len(at) for _, at in made[0]) > len(slots)
        else why
    )
    if lonely and not reason:
        reason = "it has one channel"
    each = tuple(len(at) for slot, at in made[0] if slot in links.opened)
    products = tuple(slot for slot in slots if slot in links.products)
    return Group(layers, made, products, reason, each, not products and not reason)


def _components(count: int, edges: list[tuple[Indices, Indices]]) -> Indices:
    """Labels each element with the least element to which ties connect it."""
    labels = np.arange(count)
    if not edges:
        return labels
    ones = np.concatenate([one for one, _ in edges])
    twos = np.concatenate([two for _, two in edges])
    while True:
        low = np.minimum(labels[ones], labels[twos])
        new = labels.copy()
        np.minimum.at(new, labels[ones], low)
        np.minimum.at(new, labels[twos], low)
        np.minimum.at(new, ones, low)
        np.minimum.at(new, twos, low)
        while True:  # follow labels until they point at themselves
            jumped = new[new]
            if np.array_equal(jumped, new):
                break
            new = jumped
        if np.array_equal(new, labels):
            return labels
        labels = new


# Finds weights that a module uses as they are and transposed, which exporters store twice.

_FEW = 16
"""The fewest elements of matrices that are compared. A choice: smaller matrices may be equal by chance."""


def twins(model: ir.Model) -> list[tuple[str, str]]:
    """Finds pairs of stored matrices of which one is the transpose of the other. Matrices with few different numbers,
    such as an identity, are left out, because they may be equal by chance."""
    seen: dict[tuple[object, ...], list[tuple[str, npt.NDArray[np.floating]]]] = {}
    found = []
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or not is_weight(value) or len(tensor.shape) != _AXES or tensor.size < _FEW:
            continue
        array = np.asarray(tensor.numpy())
        if array.dtype.kind != "f":
            continue
        rows, columns = array.shape
        # Transposes share both corners, so that few matrices are compared whole.
        corners = array[0, 0], array[-1, -1]
        for other, matrix in seen.get((columns, rows, *corners), []):
            if np.array_equal(matrix.T, array) and len(np.unique(array)) > array.size // 2:
                found.append((other, name))
        seen.setdefault((rows, columns, *corners), []).append((name, array))
    return found


_AXES = 2
"""The number of axes of a matrix."""


@functools.cache
def families() -> Mapping[str, Operator]:
    """Returns the family of each operator."""
    found = rooms.members("onnxsmith.precision.pruning.operators", Operator)
    return {op: family for family in found.values() for op in family.ops}


def linked(
    model: ir.Model,
    views: Mapping[tuple[Sizes, Sizes], int] | None = None,
    keep: Container[str] = (),
    twins: Sequence[tuple[str, str]] = (),
) -> Links:
    """Returns the ties of the main graph. The model must have inferred shapes, and its constants must be initializers.
    The output channels of nodes in `keep` stay. The two matrices of each pair in `twins` lose the same channels."""
    links = Links(dict(views or {}), twins=tuple(twins))
    for node in model.graph:
        links.node = node
        family = families().get(node.op_type) if not node.domain else None
        if family is not None:
            family.link(node, links)
        _pin_the_rest(node, links)
        if walk.node_label(node) in keep:
            for value in node.outputs:
                for axis in links.live_axes(value):
                    links.pin(value, axis, f"{links.label} is on the given keep-list")
    links.node = None
    for one, other in twins:
        a, b = model.graph.initializers[one], model.graph.initializers[other]
        for axis in (0, 1):
            if (one, axis) in links.slots or (other, 1 - axis) in links.slots:
                links.tie(a, axis, b, 1 - axis)
    for value in model.graph.outputs:
        for axis in links.live_axes(value):
            links.pin(value, axis, f"the channels reach the output {value.name!r} of the graph")
    _pin_shared(model, links)
    return links


def _pin_the_rest(node: ir.Node, links: Links) -> None:
    """Pins the live axes of a node's inputs that its family did not tie."""
    inside = set(captures.captured(node))
    for value in captures.reads(node):
        for axis in links.live_axes(value):
            if value in inside:
                links.pin(
                    value,
                    axis,
                    f"the channels are read in a branch or body of {node.op_type} {walk.node_label(node)!r}",
                )
            elif id(node) not in links.readers.get((value.name or "", axis), set()):
                links.pin(value, axis, _not_understood(node))


ONNXRUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operators. The domains of its layouts begin with it (`com.microsoft.nchwc`)."""


def is_of_onnxruntime(node: ir.Node) -> bool:
    """Whether a node is an operator that only onnxruntime has."""
    return node.domain == ONNXRUNTIME or node.domain.startswith(f"{ONNXRUNTIME}.")


def _not_understood(node: ir.Node) -> str:
    own = ", an operator of onnxruntime" if is_of_onnxruntime(node) else ""
    return f"prune cannot follow channels through {walk.op_name(node)} {walk.node_label(node)!r}{own}"


def _pin_shared(model: ir.Model, links: Links) -> None:
    """Pins shared weights that some reader does not follow along the same axis. If all readers follow the axis, their
    channels are removed together."""
    weights = {value.name or "": value for value in model.graph.initializers.values()}
    outputs = {value.name for value in model.graph.outputs}
    inner = {name.name for node in model.graph for name in captures.captured(node)}
    for slot in [slot for slot in links.slots if slot[0] in weights]:
        value = weights[slot[0]]
        readers = {id(use.node): use.node for use in value.uses()}
        others = [node for at, node in readers.items() if at not in links.readers.get(slot, set())]
        if others:
            said = (
                f"{walk.op_name(others[0])} {walk.node_label(others[0])!r} also reads the weight {slot[0]!r}, and "
                "needs all of it"
            )
            links.pin(value, slot[1], said)
        # The last condition: one node reads the weight twice, and its ties may follow only one use.
        elif slot[0] in outputs or slot[0] in inner or len(readers) < len(value.uses()):
            links.pin(value, slot[1], f"the weight {slot[0]!r} is shared")
