"""Makes maps for operators of ai.onnx.ml: keys that the graph knows, and values of the declared dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.signature import Port
from onnxsmith.verification.inputs.input_readers import Owners, readers
from onnxsmith.verification.inputs.string_inputs import Texts

_VOCABULARIES = ("string_vocabulary", "int64_vocabulary")
_SOME = 0.75
"""Sets the share of the known keys that a map has. A choice."""
_FEW = 4
"""Counts the keys of a map if the graph knows no keys. A choice."""

Keys = tuple[str, ...] | tuple[int, ...]


def keys(value: ir.Value, inside: Owners | None = None) -> Keys:
    """Returns the keys that the map's readers look up. If a reader makes an array of the map, returns the numbers up to
    the array's length."""
    for reader in readers(value, inside):
        for name in _VOCABULARIES:
            attribute = reader.node.attributes.get(name)
            if attribute is not None and not attribute.is_ref():
                return tuple(attribute.value)
        if reader.node.op_type == "CastMap":
            return tuple(range(max(reader.node.attributes.get_int("max_map", 1), _FEW)))
    return ()


def drawn(port: Port, known: Keys, rng: np.random.Generator) -> list[Any]:
    """Draws a map as two arrays: some of the keys in order, and their values."""
    pool = sorted(known) or (["a", "b", "onnx"] if port.keys == "string" else list(range(_FEW)))
    kept = rng.random(len(pool)) < _SOME
    kept[int(rng.integers(len(pool)))] = True
    chosen = [key for key, is_kept in zip(pool, kept, strict=True) if is_kept]
    return [np.array(chosen, object if port.keys == "string" else np.int64), _values(port, len(chosen), rng)]


def _values(port: Port, count: int, rng: np.random.Generator) -> Any:
    if port.dtype == "string":
        return Texts((("1.5",), ("-2.25",), ("3",))).drawn(rng, (count,))
    kind = ir.DataType[port.dtype.upper()]
    if kind.is_integer():
        return rng.integers(0, 2 * _FEW, count).astype(kind.numpy())
    return rng.standard_normal(count).astype(kind.numpy())
