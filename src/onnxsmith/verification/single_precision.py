"""Compares float32 copies of two models that compute in float16 or bfloat16, if the rounding of these dtypes hides too
much.

A sum of float16 numbers is rounded to three digits, so many sums together may hide a fault of 1% in a weight. Two
correct models of one function also agree in float32, and in float32 the fault is seen. Faults of the narrow dtype
itself, such as an overflow or a missing Cast, show in the comparison of the models themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.graph.surgery.float64_copy import retyped
from onnxsmith.verification.inputs.generate import Feed

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_NAMES = ("float16", "bfloat16")
_MOST = 2**30
"""Limits the bytes of narrow weights of which a copy is made. A choice: 1 GiB becomes 2 GiB."""


def single(model: ir.Model) -> ir.Model | None:
    """Returns a copy with float32 in place of float16 and bfloat16, also for inputs and outputs. Returns None for a
    model without these dtypes, with quantised values, with other domains, or with large weights."""
    tensors = [one for one in walk.tensors(model) if one.dtype in _NARROW]
    ports = signature(model)
    named = any(port.dtype in _NAMES for port in (*ports.inputs, *ports.outputs))
    if not (tensors or named) or sum(one.nbytes for one in tensors) > _MOST:
        return None
    if any("Quantize" in node.op_type or node.domain not in ("", "ai.onnx") for node in walk.all_nodes(model)):
        return None
    for dtype in _NARROW:
        model = retyped(model, dtype, ir.DataType.FLOAT)
    return model


def signature_of(narrow: Signature) -> Signature:
    """Returns the signature of the copy."""
    inputs, outputs = (tuple(_widened(port) for port in ports) for ports in (narrow.inputs, narrow.outputs))
    return replace(narrow, inputs=inputs, outputs=outputs)


def values_of(narrow: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the arrays to the copy's dtypes."""
    return {
        name: value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype.name in _NAMES else value
        for name, value in narrow.items()
    }


def feeds_of(given: tuple[Feed, ...]) -> tuple[Feed, ...]:
    """Converts the inputs to the copy's dtypes."""
    return tuple(replace(feed, values=values_of(feed.values)) for feed in given)


def _widened(port: Port) -> Port:
    return replace(port, dtype="float") if port.dtype in _NAMES else port
