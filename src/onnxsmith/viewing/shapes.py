"""Gives the values of a model their types, by inference where the file does not declare them."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.model.shapes.inferred import inferred


def with_shapes(model: ir.Model) -> tuple[ir.Model, str, str | None]:
    """Returns a copy of the model with the types that are known, what is said of them, and a note on trouble."""
    copy, trouble = inferred(model)
    values = [value for node in walk.all_nodes(copy) for value in node.outputs if value.name]
    known = sum(value.shape is not None for value in values)
    return copy, f"{known:,} of {len(values):,} inferred from the inputs", trouble
