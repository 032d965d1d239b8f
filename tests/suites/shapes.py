"""What shape inference says of a value, held to what a run gives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.dims import evaluate


def lies(value: ir.Value, expected: np.ndarray, sizes: Mapping[str, int]) -> list[str]:
    """What is known of the value and is not so in a run at these sizes of the symbols."""
    found = []
    if value.dtype is not None and expected.dtype.kind not in "OUS" and value.dtype.numpy() != expected.dtype:
        found.append(f"{value.dtype} is {expected.dtype}")
    if not expected.size:
        return found  # onnxruntime's reductions of nothing have shapes of their own
    dims, elements = facts.dims(value), facts.integers(value)
    if dims is not None and not _agree(dims, expected.shape, sizes):
        found.append(f"the shape {dims} is {expected.shape} with {sizes}")
    if elements is not None and not _agree(elements, expected.ravel().tolist(), sizes):
        found.append(f"the elements {elements} are {expected.ravel().tolist()} with {sizes}")
    return found


def _agree(said: tuple[int | str | None, ...], real: tuple[int, ...] | list[int], sizes: Mapping[str, int]) -> bool:
    if len(said) != len(real):
        return False
    return all(evaluate(dim, sizes) in (None, size) for dim, size in zip(said, real, strict=True))
