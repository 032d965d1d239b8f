"""Finds axes of a node's operands that must have the same size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import runtime_operators

Place = tuple[int, int]
"""Holds the index of an operand, and an axis of this operand."""
Rank = Callable[[int], int | None]
"""Returns the rank of an operand; None if the operand is left out or its rank is unknown."""

BROADCASTING = {
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip
_RECURRENT = {"LSTM", "GRU", "RNN"}
_CHANNELS = {"BatchNormalization", "InstanceNormalization", "GroupNormalization"}
_SAME_BATCH = {"GridSample", "DeformConv", "Attention", "AffineGrid"}


@dataclass(frozen=True)
class Group:
    """Holds places that must have the same size. In a `broadcast` group a size of 1 also fits. A node sums over the
    places of a `summed` group."""

    places: tuple[Place, ...]
    broadcast: bool = False
    summed: bool = False


def groups(node: ir.Node, rank: Rank) -> Iterator[Group]:
    """Yields the groups of a node of the default domain, or of one that is such a node in another form."""
    count, kind = len(node.inputs), runtime_operators.kind(node)
    if kind in BROADCASTING:
        yield from _aligned(range(count), rank)
    elif kind == "Concat":
        axis = node.attributes["axis"].as_int()
        for at in range(rank(0) or 0):
            if at != axis % (rank(0) or 1):
                yield Group(tuple((index, at) for index in range(count)))
    elif kind == "MatMul":
        yield from _matmul(rank)
    elif kind == "Gemm":
        turned = [node.attributes.get_int(name, 0) for name in ("transA", "transB")]
        yield Group(((0, 1 - turned[0]), (1, turned[1])), summed=True)
        yield from _bias(rank, turned)
    elif kind in _RECURRENT:
        axis = 0 if node.attributes.get_int("layout", 0) else 1
        states = [(index, axis) for index in (5, 6) if index < count and rank(index) is not None]
        lengths = [(4, 0)] if count > 4 and rank(4) is not None else []
        yield Group(((0, axis), *lengths, *states))
    elif kind in _CHANNELS:
        yield Group(((0, 1), *((index, 0) for index in range(1, count) if rank(index) is not None)))
    elif kind in _SAME_BATCH:
        first = [index for index in range(count) if (rank(index) or 0) > 2]
        yield Group(
            tuple((index, 0) for index in first if not (kind == "DeformConv" and index == 1)), kind == "Attention"
        )
    elif kind == "Conv" and node.attributes.get_int("group", 1) == 1:
        yield Group(((0, 1), (1, 1)), summed=True)
    elif kind in ("GatherElements", "ScatterElements"):
        axis = node.attributes.get_int("axis", 0) % (rank(0) or 1)
        for at in range(rank(0) or 0):
            if at != axis:
                yield Group(tuple((index, at) for index in range(count)))
        if kind == "ScatterElements":
            yield Group(((1, axis), (2, axis)))
    elif kind == "ScatterND":
        rows = (rank(1) or 1) - 1
        for at in range(rows):
            yield Group(((1, at), (2, at)))
        indices = node.inputs[1]
        depth = indices.shape[-1] if indices is not None and indices.shape else None
        for at in range(depth if isinstance(depth, int) else rank(0) or 0, rank(0) or 0):
            yield Group(((0, at), (2, at - (depth if isinstance(depth, int) else 0) + rows)))
    elif kind == "GatherND":
        for at in range(node.attributes.get_int("batch_dims", 0)):
            yield Group(((0, at), (1, at)))
    elif kind == "Einsum":
        yield from _einsum(node.attributes["equation"].as_string(), count)


def _aligned(operands: Sequence[int], rank: Rank, skipped: int = 0) -> Iterator[Group]:
    """Yields the axes that coincide when the operands are aligned to the right, without the last `skipped` axes."""
    ranks = {index: known for index in operands if (known := rank(index)) is not None}
    for back in range(1 + skipped, max(ranks.values(), default=0) + 1):
        places = tuple((index, known - back) for index, known in ranks.items() if known >= back)
        if len(places) > 1:
            yield Group(places, broadcast=True)


def _matmul(rank: Rank) -> Iterator[Group]:
    a, b = rank(0), rank(1)
    if a is None or b is None or not a or not b:
        return
    yield Group(((0, a - 1), (1, max(b - 2, 0))), summed=True)
    if a > 2 and b > 2:
        yield from _aligned((0, 1), rank, skipped=2)


def _bias(rank: Rank, turned: Sequence[int]) -> Iterator[Group]:
    known = rank(2)
    if known:
        yield Group(((1, 1 - turned[1]), (2, known - 1)), broadcast=True)
    if known == 2:
        yield Group(((0, turned[0]), (2, 0)), broadcast=True)


def _einsum(equation: str, count: int) -> Iterator[Group]:
    terms = equation.replace(" ", "").split("->")[0].split(",")
    if "." in equation or len(terms) != count:
        return
    for label in dict.fromkeys("".join(terms)):
        places = tuple((index, term.index(label)) for index, term in enumerate(terms) if label in term)
        if len(places) > 1:
            yield Group(places)
