"""Gives the values of a model their types, by inference where the file does not declare them."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.shapes.inferred import infer_in_place

_MANY = 5000
"""Nodes from which declared shapes are shown as they are, if the file declares all. Measured: inference takes a second
for 15,000 nodes."""


def with_shapes(model: ir.Model, *, own: bool) -> tuple[ir.Model, str, str | None]:
    """Returns the model with the types that are known, what is said of them, and a note on trouble. A model that is not
    the caller's `own` is copied first."""
    model = model if own else cloned(model)
    if not any(True for _ in walk.nested(model.graph)):
        model.graph.meta[walk.FLAT] = True  # a dozen walks look for branches otherwise
    values = [value for node in walk.all_nodes(model) for value in node.outputs if value.name]
    if len(values) > _MANY and all(value.shape is not None and value.type is not None for value in values):
        return model, "as the file declares them", None
    trouble = infer_in_place(model)
    known = sum(value.shape is not None for value in values)
    return model, f"{known:,} of {len(values):,} inferred from the inputs", trouble
