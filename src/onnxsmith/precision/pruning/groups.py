"""Channels of a graph: elements that can only go together, in groups of which some go and some stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Indices, Links, Sizes, Slot, is_weight
from onnxsmith.precision.pruning.channel_propagation import linked

Channel = tuple[tuple[Slot, Indices], ...]
"""The elements of one channel, by axis."""


@dataclass(frozen=True)
class Group:
    """Channels along the same axes, of which any may go. `layers` are the nodes whose output channels they are;
    `products` the axes of weights over which their readers sum. `reason` says why all of them stay, if they do."""

    layers: tuple[str, ...]
    channels: tuple[Channel, ...]
    products: tuple[Slot, ...]
    reason: str = ""
    each: tuple[int, ...] = ()
    """How many output channels of each layer are one channel of the group."""
    is_unread: bool = False
    """Whether nothing that reaches an output reads the channels."""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The axes."""
        return tuple(slot for slot, _ in self.channels[0])


@dataclass(frozen=True)
class Channels:
    """All groups of a graph, those that stay included."""

    groups: tuple[Group, ...]
    links: Links

    @property
    def free(self) -> tuple[Group, ...]:
        """The groups of which channels may go."""
        return tuple(group for group in self.groups if not group.reason)

    @property
    def fixed(self) -> tuple[Group, ...]:
        """The groups that stay."""
        return tuple(group for group in self.groups if group.reason)


def channels(model: ir.Model, keep: Iterable[str] = ()) -> Channels:
    """The channels of the main graph of a model with inferred shapes, whose constants are initializers. Those of layers
    in `keep` stay.

    A reshape that divides an axis (heads, groups of a shuffle) can be followed along either part. Each kind of division
    is followed in the way that frees the most weights; the outermost part is preferred.
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
    """The best ways to follow the divisions that were not seen before, one after the other, and what they free. A way
    may lead to further divisions, which are decided before the way is judged."""
    best = follow(views) if best is None else best
    known = seen | set(best.links.divided)
    for division, ways in list(best.links.divided.items()):
        for place in range(ways) if division not in seen else ():
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
"""Divisions that were seen before further ones are no longer decided. A choice: each way is a walk over the graph."""
_BETTER = 1.01
"""By how much another way to follow a division has to be better. A choice."""


def _elements(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.size


def _freed(found: Channels, sizes: dict[str, int]) -> float:
    """Elements of weights of which a part may go. Few large channels count less: a share of them is often none."""
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
        order = np.argsort(own, kind="stable")
        bounds = np.flatnonzero(np.diff(own[order])) + 1
        for part in np.split(order, bounds):
            members.setdefault(int(own[part[0]]), []).append((slot, part))
    return Channels(tuple(_groups(links, members, pins)), links)


def _groups(links: Links, members: dict[int, list[tuple[Slot, Indices]]], pins: dict[int, str]) -> Iterator[Group]:
    """Channels with the same axes are a group. Channels without a layer that computes them stay."""
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
    reason = "all of its channels go together" if lonely and sum(len(at) for _, at in made[0]) > len(slots) else why
    if lonely and not reason:
        reason = "it has one channel"
    each = tuple(len(at) for slot, at in made[0] if slot in links.opened)
    products = tuple(slot for slot in slots if slot in links.products)
    return Group(layers, made, products, reason, each, not products and not reason)


def _components(count: int, edges: list[tuple[Indices, Indices]]) -> Indices:
    """Labels each element with the least element that ties lead to."""
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
        while True:  # labels of labels
            jumped = new[new]
            if np.array_equal(jumped, new):
                break
            new = jumped
        if np.array_equal(new, labels):
            return labels
        labels = new


# Finds weights that a module uses as they are and transposed, which exporters store twice.

_FEW = 16
"""Elements from which two matrices are compared. A choice: smaller ones may be equal by chance."""


def twins(model: ir.Model) -> list[tuple[str, str]]:
    """Pairs of stored matrices of which one is the transpose of the other. Matrices with few different numbers, such as
    an identity, are none: that they are equal says nothing."""
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
        corners = array[0, 0], array[-1, -1]
        for other, matrix in seen.get((columns, rows, *corners), []):
            if np.array_equal(matrix.T, array) and len(np.unique(array)) > array.size // 2:
                found.append((other, name))
        seen.setdefault((rows, columns, *corners), []).append((name, array))
    return found


_AXES = 2
"""The axes of a matrix."""
