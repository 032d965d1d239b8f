"""Adds intermediate tensors of two models as outputs, if both models compute them.

A network may lose most of the results of its first layers. Then a fault in these layers is smaller than rounding at the
outputs. A fault shows better at a tensor near the faulty weight, and best at the result of the node that reads it."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import inferred

_MOST = 64
"""Limits the intermediate tensors that are added. A choice: each tensor takes memory during a run."""
_FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def with_common_tensors(reference: ir.Model, candidate: ir.Model) -> tuple[ir.Model, ir.Model] | None:
    """Returns copies of both models that also output their common tensors: those with the same name and dtype. The
    copies share weights. Returns None if only the outputs are common."""
    ours, theirs = inferred(reference)[0], inferred(candidate)[0]
    mine, other = _values(ours), _values(theirs)
    outputs = {value.name for model in (ours, theirs) for value in (*model.graph.outputs, *model.graph.inputs)}
    common = [
        name
        for name, value in mine.items()
        if name in other and name not in outputs and value.dtype in _FLOATS and other[name].dtype == value.dtype
    ]
    # A node that reads a weight shows a fault in that weight best.
    near = [name for name in common if any(map(_is_weight, _reads(other[name])))]
    names = near or common
    if not names:
        return None
    step = -(-len(names) // _MOST)
    for model, values in ((ours, mine), (theirs, other)):
        model.graph.outputs.extend(values[name] for name in names[step - 1 :: step])
    return ours, theirs


def _reads(value: ir.Value) -> list[ir.Value]:
    maker = value.producer()
    return [read for read in maker.inputs if read is not None] if maker is not None else []


def _is_weight(value: ir.Value) -> bool:
    """Whether `detection_power` may plant a fault in the value."""
    maker = value.producer()
    fixed = value.is_initializer() or (maker is not None and maker.op_type == "Constant")
    return fixed and value.dtype in _FLOATS


def _values(model: ir.Model) -> dict[str, ir.Value]:
    """Returns the results of the nodes of the main graph, by name."""
    return {value.name: value for node in model.graph for value in node.outputs if value.name}
