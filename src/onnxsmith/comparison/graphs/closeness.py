"""Pairs nodes that differ only in their weights, by how close the weights are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.verification.metrics.base import is_numeric, widen

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


def _size(view: View, value: ir.Value) -> int:
    tensor = view.side.constants.tensor(value)
    return 0 if tensor is None else tensor.size


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
