"""Writes values to an `.npz` that plain numpy can read: numpy's own dtypes, and strings without pickling."""

from __future__ import annotations

import numpy as np

from onnxsmith.base.folders import OwnPath
from onnxsmith.graph.files import array_files
from onnxsmith.runtimes.base import Array, Feeds, Value


def is_plain(value: Value) -> bool:
    """Whether an `.npz` can hold the value and return it in a form that a runtime accepts."""
    return isinstance(value, np.ndarray) and (value.dtype.kind in "biufcU" or _texts(value) is not None)


def _texts(value: Array) -> Array | None:
    """Returns strings in numpy's string dtype, which needs no pickle; None if they would be read back differently."""
    if value.dtype.kind not in "OS":
        return None
    items = [item if isinstance(item, str) else None for item in value.ravel().tolist()]
    if any(item is None or item.endswith("\0") or not item.isprintable() for item in items):
        return None
    return np.array(items, dtype=np.str_).reshape(value.shape)


def write(feeds: Feeds, path: OwnPath) -> list[str]:
    """Writes the plain values. Returns the names of values that cannot be written."""
    plain: dict[str, Array] = {}
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and is_plain(value) and name == array_files.member(name):
            texts = _texts(value)
            plain[name] = value if texts is None else texts
    with path.open("wb") as file:
        array_files.write_npz(file, plain)
    return [name for name in feeds if name not in plain]
