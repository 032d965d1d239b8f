"""Recognises two models that have almost nothing in common, so that a list of their differences is useless."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.graphs.consistency import judged
from onnxsmith.comparison.graphs.constant_recognition import is_constant
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.graph.reading.weights import constant
from onnxsmith.graph.structure import walk

_SHARE = 0.1
"""Share of both models' nodes with a partner below which the models are called different. A choice: networks of one
kind share more, even if every weight differs."""
_WEIGHTS = 64, 4 * 2**20
"""Least elements and most bytes of a weight that is compared. A choice: smaller weights are equal by chance, and few
models have only larger ones."""
_FEWEST = 10
"""Least number of nodes of a model that is called unrelated. A choice: in a smaller one every change is a large
part."""


def are_few(partners: int, old: int, new: int) -> bool:
    """Whether `partners` nodes are a small part of both models, which have `old` and `new` nodes."""
    return min(old, new) >= _FEWEST and partners < _SHARE * min(old, new)


def are_unrelated(a: View, b: View, partners: int, counts: tuple[int, int]) -> bool:
    """Whether few nodes of two models have a partner, and the models share no weights. `counts` are the numbers of
    nodes. Weights decide because one network may be written in two ways, such as in a branch and in the main graph."""
    return are_few(partners, *counts) and not _share_weights(a, b)


def told(partners: int, old: int, new: int) -> str:
    """Returns the sentence for two unrelated models."""
    return f"these are different models: {partners:,} of {old:,} and {new:,} nodes have a partner"


def part_weak(a: View, b: View, pairs: Pairs) -> None:
    """Dissolves pairs that differ, if the two graphs are unrelated: so two Casts are not listed as one changed node. A
    pair that is equal only because of a dissolved pair is dissolved too."""
    ours = [node for node in a.nodes if node in pairs.nodes]
    if not are_unrelated(a, b, len(ours), (len(a.nodes), len(b.nodes))):
        return
    while True:
        weak = [(one, other) for one, other, is_equal in judged(a, b, pairs) if not is_equal]
        if not weak:
            return
        for one, other in weak:
            pairs.part(one, other)


def _share_weights(a: View, b: View) -> bool:
    """Whether both models have a common weight, in any order of its elements."""
    ours, theirs = (_sums(view.graph) for view in (a, b))
    known = set(theirs)
    return any(one in known for one in ours)


def _sums(graph: ir.Graph) -> Iterator[tuple[object, ...]]:
    least, most = _WEIGHTS
    for tensor in _tensors(graph):
        if tensor is None or tensor.size < least or tensor.nbytes > most or not tensor.dtype.is_floating_point():
            continue
        try:
            array = np.ascontiguousarray(tensor.numpy())
        except (OSError, ValueError):  # values that cannot be read
            continue
        # Arrays of one value are equal by chance; the sum of bits does not depend on the order of elements.
        if array.size and not np.all(array == array.reshape(-1)[0]):
            bits = array.view(f"u{array.dtype.itemsize}")
            yield tensor.dtype, tensor.size, int(np.sum(bits, dtype=np.uint64))


def _tensors(graph: ir.Graph) -> Iterator[ir.TensorProtocol | None]:
    for one in (graph, *walk.nested(graph)):
        yield from (value.const_value for value in one.initializers.values())
        yield from (constant(node) for node in one if is_constant(node))
