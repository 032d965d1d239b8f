"""Follows one column of a table back to the graph input that it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

_AS_IT_IS = {"Identity", "Cast", "CastLike", "Flatten", "Imputer"}
"""Lists the operators that keep the numbers and the order of columns."""
_DEEPEST = 64
"""Limits the nodes that are followed back. A choice: the limit ends the recursion in any graph."""


@dataclass(frozen=True)
class Column:
    """Names column `index` of the input `name`. The node reads `gain * x + shift` of the column's values x. `exact` is
    True if this is x itself."""

    name: str
    index: int
    gain: float = 1.0
    shift: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the node reads the input's number unchanged."""
        return self.gain == 1 and self.shift == 0

    def before(self, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the input values for which the node reads `wanted`."""
        return wanted if self.exact else (wanted - self.shift) / self.gain


def origin(value: ir.Value | None, index: int, depth: int = 0) -> Column | None:
    """Returns the input column from which column `index` of a table comes; None if several numbers enter the column."""
    if value is None or depth > _DEEPEST or index < 0:
        return None
    node = value.producer()
    if node is None:
        is_table = value.is_graph_input() and value.shape is not None and len(value.shape) == 2
        return Column(value.name or "", index) if is_table and value.const_value is None else None
    if node.op_type in _AS_IT_IS:
        return origin(node.inputs[0], index, depth + 1)
    step = _STEPS.get(node.op_type)
    return step(node, index, depth + 1) if step is not None else None


def _joined(node: ir.Node, index: int, depth: int) -> Column | None:
    if node.op_type == "Concat" and node.attributes.get_int("axis", 1) not in (1, -1):
        return None
    for value in node.inputs:
        width = _width(value)
        if width is None:  # the columns after a part of unknown width have no known position
            return None
        if index < width:
            return origin(value, index, depth)
        index -= width
    return None


def _width(value: ir.Value | None, depth: int = 0) -> int | None:
    """Returns the number of columns of a table. The number comes from the table's own shape, or from the shape of the
    table from which it is computed."""
    if value is None or depth > _DEEPEST:
        return None
    if value.shape is not None:
        width = value.shape[-1] if len(value.shape) == 2 else None
        return width if isinstance(width, int) else None
    node = value.producer()
    keeps = node is not None and node.op_type in _AS_IT_IS | {"Scaler"}
    return _width(node.inputs[0], depth + 1) if node is not None and keeps else None


def _chosen(node: ir.Node, index: int, depth: int) -> Column | None:
    if node.op_type == "Gather" and node.attributes.get_int("axis", 0) not in (1, -1):
        return None
    places = _numbers(node.inputs[1])
    if places is None or index >= places.size:
        return None
    return origin(node.inputs[0], int(places[index]), depth)


def _scaled(node: ir.Node, index: int, depth: int) -> Column | None:
    offset = _of(np.asarray(node.attributes.get_floats("offset", [0.0])), index)
    scale = _of(np.asarray(node.attributes.get_floats("scale", [1.0])), index)
    return _affine(origin(node.inputs[0], index, depth), scale, -offset * scale)


def _computed(node: ir.Node, index: int, depth: int) -> Column | None:
    first, second = node.inputs
    held = _numbers(second)
    table = first
    if held is None and node.op_type in ("Add", "Mul"):
        held, table = _numbers(first), second
    if held is None:
        return None
    number = _of(held, index)
    if node.op_type == "Div":
        number = 1 / number if number else math.nan
    gain, shift = {"Add": (1.0, number), "Sub": (1.0, -number)}.get(node.op_type, (number, 0.0))
    return _affine(origin(table, index, depth), gain, shift)


def _affine(found: Column | None, gain: float, shift: float) -> Column | None:
    if found is None or not gain or not math.isfinite(gain) or not math.isfinite(shift):
        return None
    return replace(found, gain=found.gain * gain, shift=found.shift * gain + shift)


def _numbers(value: ir.Value | None) -> npt.NDArray[np.float64] | None:
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    if tensor is None or tensor.dtype == ir.DataType.STRING or not tensor.size:
        return None
    held: npt.NDArray[Any] = tensor.numpy()
    is_row = held.size in (1, held.shape[-1] if held.ndim else 1)  # a number for all columns, or one for each
    return held.astype(np.float64).ravel() if is_row else None


def _of(row: npt.NDArray[Any], index: int) -> float:
    return float(row[0] if row.size == 1 else row[index]) if row.size == 1 or index < row.size else math.nan


_STEPS: dict[str, Callable[[ir.Node, int, int], Column | None]] = {
    "Concat": _joined, "FeatureVectorizer": _joined, "Gather": _chosen, "ArrayFeatureExtractor": _chosen,
    "Scaler": _scaled, "Add": _computed, "Sub": _computed, "Mul": _computed, "Div": _computed,
}  # fmt: skip
