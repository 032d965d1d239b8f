"""Pairs nodes by their weights: by those that no other node has, and by how close they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.verification.metrics.base import is_numeric, widen

_LEARNED = 8
"""Least elements of a constant that can identify a node. A choice: smaller ones are mostly shapes, axes and scales."""
_MOST_BITS = 2**31
"""Nodes times pairs up to which the order of pairs is compared: 256 MiB of bits."""


def weight_anchors(a: View, b: View, pairs: Pairs) -> list[tuple[ir.Node, ir.Node]]:
    """Returns pairs of nodes with equal weights, without pairs that contradict the order of most others. So layers that
    exchanged their weights are still paired by their places."""
    ours, theirs = _unique(a, pairs), _unique(b, pairs)
    pairs_found = [(node, theirs[key]) for key, node in ours.items() if key in theirs]
    if len(pairs_found) * max(len(a.nodes), len(b.nodes)) > _MOST_BITS:
        return []
    return _in_order(a, b, pairs_found)


def _unique(view: View, pairs: Pairs) -> dict[Hashable, ir.Node]:
    """Returns the nodes whose weights no other node has, by operator and weights."""
    groups: dict[Hashable, list[ir.Node]] = defaultdict(list)
    for node in view.nodes:
        if pairs.has(node):
            continue
        learned = tuple(
            (view.slot(node, position), view.side.constants.number(value, Level.EXACT))
            for position, value in enumerate(node.inputs)
            if value is not None and view.is_stored(value) and _size(view, value) >= _LEARNED
        )
        if learned:
            groups[view.operator(node), learned].append(node)
    return {key: nodes[0] for key, nodes in groups.items() if len(nodes) == 1}


def _size(view: View, value: ir.Value) -> int:
    tensor = view.side.constants.tensor(value)
    return 0 if tensor is None else tensor.size


def _in_order(a: View, b: View, pairs: list[tuple[ir.Node, ir.Node]]) -> list[tuple[ir.Node, ir.Node]]:
    """Removes the pairs that most other pairs contradict, until no two contradict each other."""
    anchors = [(view, [pair[side] for pair in pairs]) for side, view in enumerate((a, b))]
    before, after = ([walk(*one) for one in anchors] for walk in (_before, _after))
    against = [
        (before[0][n] & after[1][n]) | (after[0][n] & before[1][n]) for n in range(len(pairs))
    ]  # pair n comes after those on one side, and before them on the other
    left = {n for n, mask in enumerate(against) if mask}
    gone: set[int] = set()
    while left:
        worst = max(against[n].bit_count() for n in left)
        if worst == 0:
            break
        # All of them: it is unknown which of two pairs that contradict each other is right.
        removed = {n for n in left if against[n].bit_count() == worst}
        mask = sum(1 << n for n in removed)
        gone |= removed
        left -= removed
        for n in left:
            against[n] &= ~mask
    return [pair for n, pair in enumerate(pairs) if n not in gone]


def _before(view: View, anchors: list[ir.Node]) -> list[int]:
    """Returns for each anchor the anchors on paths that lead to it, as bits."""
    bit = {node: 1 << n for n, node in enumerate(anchors)}
    reached: dict[ir.Node, int] = {}
    for node in view.nodes:
        mask = 0
        for value in (*node.inputs, *view.captured.get(node, ())):
            made = view.producer(value) if value is not None else None
            if made is not None:
                mask |= reached.get(made, 0) | bit.get(made, 0)
        reached[node] = mask
    return [reached[node] for node in anchors]


def _after(view: View, anchors: list[ir.Node]) -> list[int]:
    """Returns for each anchor the anchors on paths from it, as bits."""
    bit = {node: 1 << n for n, node in enumerate(anchors)}
    reached: dict[ir.Node, int] = {}
    for node in reversed(view.nodes):
        mask = 0
        for value in node.outputs:
            for reader, _ in view.readers.get(value, ()):
                mask |= reached.get(reader, 0) | bit.get(reader, 0)
        reached[node] = mask
    return [reached[node] for node in anchors]


_SAMPLE = 256
"""How many elements of a weight are read. A choice: enough to tell trained weights apart."""
_MOST = 64
"""How many nodes of one group are compared with each other. A choice: the work grows with the square."""
_CLOSE = 0.5
"""Least cosine of the samples at which two weights may be one weight, trained further. A choice: random weights of 256
elements have a cosine below 0.3."""


def nearest(a: View, b: View, ours: Sequence[ir.Node], theirs: Sequence[ir.Node]) -> list[tuple[ir.Node, ir.Node]]:
    """Pairs nodes that are mutually nearest by their weights."""
    if max(len(ours), len(theirs)) > _MOST:
        return []
    left, right = _samples(a, ours), _samples(b, theirs)
    if left is None or right is None or left.shape[1] != right.shape[1]:
        return []
    cosines = left @ right.T
    best = cosines.argmax(axis=1)
    return [
        (ours[n], theirs[m])
        for n, m in enumerate(best)
        if cosines[n, m] >= _CLOSE and cosines[:, m].argmax() == n and _is_only(cosines[n], m)
    ]


def _is_only(row: npt.NDArray[np.float64], place: int) -> bool:
    # Two equally near weights decide nothing.
    return int((row == row[place]).sum()) == 1


def cosine(a: View, b: View, x: ir.Value, y: ir.Value) -> float:
    """Returns the cosine of the samples of two constants; at least 0."""
    one, other = _sample(a, x), _sample(b, y)
    if one is None or other is None or one.size != other.size:
        return 0.0
    return max(0.0, float(one @ other))


def _samples(view: View, nodes: Sequence[ir.Node]) -> npt.NDArray[np.float64] | None:
    found = [_largest_sample(view, node) for node in nodes]
    first = found[0]
    if first is None or any(one is None or one.size != first.size for one in found):
        return None
    return np.stack([one for one in found if one is not None])


def _largest_sample(view: View, node: ir.Node) -> npt.NDArray[np.float64] | None:
    """Returns the sample of the largest weight that the node reads."""
    weights = [value for value in node.inputs if value is not None and view.is_stored(value)]
    largest = max(weights, key=lambda value: _size(view, value), default=None)
    return None if largest is None else _sample(view, largest)


def _sample(view: View, value: ir.Value) -> npt.NDArray[np.float64] | None:
    """Returns sampled elements of a constant as a unit vector; None if they have no direction."""
    tensor = view.side.constants.tensor(value)
    if tensor is None or tensor.size < 2 or tensor.dtype == ir.DataType.STRING:
        return None
    array = np.asarray(tensor.numpy()).reshape(-1)
    if not is_numeric(array):
        return None
    picked = widen(array[:: max(1, array.size // _SAMPLE)][:_SAMPLE]).reshape(-1)
    picked = np.nan_to_num(picked, posinf=0.0, neginf=0.0)
    size = float(np.sqrt(np.sum(picked**2)))
    return picked / size if 0 < size < np.inf else None
