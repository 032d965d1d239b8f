"""Guesses the shape of an input without a rank in the file, from the nodes that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.graph.structure.signature import Dim, Port
from onnxsmith.verification.inputs.input_readers import Owners, Reader, readers

Sizes = tuple[int | None, ...]
"""Holds the size of each axis; None for a free size."""

_USUAL: Sizes = (None, None)
_PICTURES = {
    "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "DepthToSpace", "SpaceToDepth", "GridSample",
}  # fmt: skip
_CONVOLVES = {"Conv", "ConvInteger", "QLinearConv"}
_SPATIAL = {"MaxPool", "AveragePool", "LpPool"}
_PASSES = {"Identity", "Cast", "CastLike", "Abs", "Clip"}


def sized(port: Port, sizes: Sizes) -> Port:
    """Returns the input with these sizes, and with new symbols for free sizes."""
    shape: list[Dim] = [f"{port.name}.{axis}" if size is None else size for axis, size in enumerate(sizes)]
    return replace(port, shape=tuple(shape))


def guessed(value: ir.Value, inside: Owners | None = None) -> Sizes:
    """Returns the shape that the nearest informative reader requires. Without such a reader, returns two axes, as in
    most tables and batches."""
    kept = {value}
    for reader in readers(value, inside):
        if reader.node.inputs[reader.index] in kept:
            found = _needed(reader)
            if found is not None:
                return found
            kept |= set(reader.node.outputs) if reader.node.op_type in _PASSES else set()
    return _USUAL


def _needed(reader: Reader) -> Sizes | None:
    node, op = reader.node, reader.node.op_type
    if op == "Concat":
        shapes = (_shape(node, place) for place in range(len(node.inputs)))
        return next(((None,) * len(shape) for shape in shapes if shape is not None), None)
    if op == "Transpose" and "perm" in node.attributes:
        return (None,) * len(node.attributes.get_ints("perm", []))
    if reader.index:
        return None
    if op in _PICTURES:
        return (None,) * 4
    if op in _SPATIAL:
        return (None,) * (len(node.attributes.get_ints("kernel_shape", [])) + 2)
    other = _shape(node, 3 if op == "QLinearConv" else 1)
    return _beside(node, other) if other is not None else None


def _beside(node: ir.Node, other: Sequence[int | None]) -> Sizes | None:
    """Returns the shape that fits the weights of an operator."""
    op, rank = node.op_type, len(other)
    if op == "MatMul" and rank >= 1:
        return (None,) * max(rank - 1, 1) + (other[-2] if rank > 1 else other[0],)
    if op == "Gemm" and rank == 2 and not node.attributes.get_int("transA", 0):
        return (None, other[1] if node.attributes.get_int("transB", 0) else other[0])
    if op in _CONVOLVES and rank > 2:
        group = node.attributes.get_int("group", 1)
        return (None, group * other[1] if other[1] is not None else None, *(None,) * (rank - 2))
    if op == "ConvTranspose" and rank > 2:
        return (None, other[0], *(None,) * (rank - 2))
    if op in ("LSTM", "GRU", "RNN") and rank == 3:
        return (None, None, other[2])
    if op == "BatchNormalization" and rank == 1:
        return (None, other[0], None, None)
    return None


def _shape(node: ir.Node, place: int) -> list[int | None] | None:
    value = node.inputs[place] if place < len(node.inputs) else None
    if value is None or value.shape is None:
        return None
    return [size if isinstance(size, int) else None for size in value.shape]
