"""Reads and renames the initializers that quantization annotations of tensors name: their scales and zero points.

onnx-ir keeps an annotation in the `meta` of the annotated value. No run reads it.
"""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.seams.metadata import meta
from onnxsmith.graph.structure import walk

KEY = "quant_parameter_tensor_names"
"""The key of a value's `meta` under which onnx-ir keeps its annotation: names of initializers by what they are."""


def named(model: ir.Model) -> set[str]:
    """Returns the names of the initializers that annotations name."""
    return {name for value in walk.values(model) for name in (meta(value).get(KEY) or {}).values()}


def rename(model: ir.Model, old: str, new: str) -> None:
    """Gives an initializer its new name in all annotations."""
    for value in walk.values(model):
        found = meta(value).get(KEY)
        if found and old in found.values():
            value.meta[KEY] = {key: new if name == old else name for key, name in found.items()}
