"""Gives the values of a model their types, by inference where the file does not declare them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.base.words import first_few, several
from onnxsmith.graph.shapes.symbolic_inference import infer_in_place
from onnxsmith.graph.structure import captures, carried_fields, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.walk import node_label, op_name

_MANY = 5000
"""Nodes from which declared shapes are shown as they are, if the file declares all. Measured: inference takes a second
for 15,000 nodes."""
_SHOWN = 3
"""Nodes that a note names. A choice: one line."""


def with_shapes(model: ir.Model, *, own: bool) -> tuple[ir.Model, str, str | None]:
    """Returns the model with the types that are known, what is said of them, and a note on trouble. A model that is not
    the caller's `own` is copied first."""
    model = model if own else cloned(model)
    if not any(True for _ in walk.nested(model.graph)):
        model.graph.meta[walk.FLAT] = True  # a dozen walks look for branches otherwise
    values = [value for node in walk.all_nodes(model) for value in node.outputs if value.name]
    if len(values) > _MANY and all(value.shape is not None and value.type is not None for value in values):
        return model, "as the file declares them", None
    trouble = infer_in_place(model, elements=True)
    unknown = [value for value in values if value.shape is None]
    told = f"{len(values) - len(unknown):,} of {len(values):,} inferred from the inputs"
    return model, told, "; ".join(filter(None, (trouble, _unknown(unknown)))) or None


def _unknown(values: Sequence[ir.Value]) -> str:
    """Counts the results whose shapes nothing tells, and names the nodes at which that begins; "" without any. A map
    has no shape."""
    values = [value for value in values if value.type is not None or carried_fields.odd_type(value) is None]
    lost = set(values)
    first = dict.fromkeys(
        f"{op_name(made)} {node_label(made)}".strip()
        for value in values
        if (made := value.producer()) is not None and not any(read in lost for read in captures.reads(made))
    )
    if not values:
        return ""
    shown = first_few(first, _SHOWN)
    return f"the shapes of {several(len(values), 'result')} are unknown" + (f", from here on: {shown}" if shown else "")
