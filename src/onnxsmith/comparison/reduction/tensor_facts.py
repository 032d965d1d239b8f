"""Stores facts about the tensors of a graph: the value on a case's inputs, or else dtype and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.portable_arrays import is_plain
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import Array, Value

Kind = tuple[ir.DataType, tuple[int, ...] | None]
"""Dtype and shape; the shape is None if it is not fully known."""


@dataclass
class Known:
    """The facts about tensors. `values` are recorded tensors; `kinds` are dtypes and shapes inferred from the graph."""

    values: dict[str, Value] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)

    def kind(self, name: str) -> Kind | None:
        """Returns dtype and shape of a tensor; None if the dtype is unknown, or if it is not a tensor."""
        if name in self.values:
            value = self.values[name]
            if not isinstance(value, np.ndarray):
                return None
            return dtype_of(value), tuple(value.shape)
        return self.kinds.get(name)

    def array(self, name: str) -> Array | None:
        """Returns the recorded value, or a made-up one if only dtype and shape are known; None if they are not."""
        if name in self.values:
            value = self.values[name]
            return value if isinstance(value, np.ndarray) else None
        dtype, shape = self.kinds.get(name, (None, None))
        if dtype is None or shape is None or math.prod(shape) > _MOST_MADE_UP:
            return None
        return made_up(dtype, shape)

    def is_cuttable(self, value: ir.Value) -> bool:
        """Whether the value can be replaced: as far as is known, it is a tensor."""
        name = value.name or ""
        if name in self.values:
            return isinstance(self.values[name], np.ndarray)
        return name in self.kinds


_MOST_MADE_UP = 2**26
"""Most elements of a made-up tensor. A choice: 256 MiB of float32."""


def dtype_of(value: Array) -> ir.DataType:
    """Returns the ONNX dtype of an array."""
    return ir.DataType.STRING if value.dtype.kind in "OUS" else ir.DataType.from_numpy(value.dtype)


def made_up(dtype: ir.DataType, shape: tuple[int, ...]) -> Array:
    """Returns made-up values for a tensor, equal for equal dtypes and shapes."""
    rng = np.random.default_rng(0)
    if dtype == ir.DataType.STRING:
        return np.full(shape, "a", dtype=object)
    if dtype == ir.DataType.BOOL:
        return np.ones(shape, bool)
    if dtype.is_integer():
        return np.ones(shape, dtype.numpy())
    return np.asarray(rng.random(shape) + 0.5).astype(dtype.numpy())


def kinds(model: ir.Model) -> dict[str, Kind]:
    """Returns dtype and shape of every tensor, bodies included, as far as they follow from the graph. A name that
    different tensors in several graphs share is left out."""
    found: dict[str, Kind | None] = {}
    shaped = inferred(model)[0]
    for value in walk.values_of(walk.graphs_and_functions(shaped)):
        if not value.name:
            continue
        kind = _kind(value)
        found[value.name] = kind if found.get(value.name, kind) == kind else None
    return {name: kind for name, kind in found.items() if kind is not None}


def _kind(value: ir.Value) -> Kind | None:
    if value.dtype is None or (value.type is not None and not isinstance(value.type, ir.TensorType)):
        return None
    shape = value.shape
    known = shape is not None and all(isinstance(dim, int) and dim >= 0 for dim in shape)
    return value.dtype, tuple(int(dim) for dim in shape) if known and shape is not None else None  # type: ignore[arg-type]


def port(name: str, known: Known) -> tuple[ir.Value, Array | None] | None:
    """Returns a value to replace a tensor, and its content; None if nothing is known of the tensor. The value is an
    initializer if an `.npz` cannot hold the content."""
    kind = known.kind(name)
    if kind is None:
        return None
    array = known.array(name)
    shape = kind[1] if array is None else tuple(array.shape)
    new = ir.Value(name=name, type=ir.TensorType(kind[0]), shape=None if shape is None else ir.Shape(shape))
    if array is not None and not is_plain(array):
        new.const_value = tensor(array, name)
    return new, array


def tensor(array: Array, name: str) -> ir.TensorProtocol:
    """Returns the array as the tensor of an initializer."""
    if array.dtype.kind in "OUS":
        texts = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]
        return ir.StringTensor(texts, shape=ir.Shape(array.shape), name=name)
    return ir.Tensor(array, name=name)
