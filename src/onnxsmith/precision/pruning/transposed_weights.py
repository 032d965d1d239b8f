"""Finds weights that a module uses as they are and transposed, which exporters store twice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import is_weight

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
