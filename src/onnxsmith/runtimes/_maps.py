"""Converts maps, which some operators of ai.onnx.ml return, to values that can be sent, compared and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.runtimes.base import Value


def of_map(value: Mapping[Any, Any]) -> Value:
    """Returns a map as a list of two arrays: its keys in ascending order, and their values. Floats become float32,
    because operators of ai.onnx.ml put no other floats into a map."""
    held = sorted(value.items(), key=lambda pair: pair[0])
    return [_array([key for key, _ in held]), _array([item for _, item in held])]


def to_map(value: Value) -> dict[Any, Any]:
    """Returns the map whose keys and values are these two arrays."""
    assert isinstance(value, list)
    keys, held = value
    return dict(zip(keys.tolist(), held.tolist(), strict=True))


def _array(items: list[Any]) -> Value:
    if any(isinstance(item, str) for item in items):
        return np.array(items, dtype=object)
    array = np.asarray(items)
    return array.astype(np.float32) if array.dtype == np.float64 else array
