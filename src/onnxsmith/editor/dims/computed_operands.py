"""Replaces operands that nodes compute from constants by the constants, so that shapes follow from them."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import several
from onnxsmith.editor.dims.runtime_sizes import Sizes
from onnxsmith.editor.edited_model import Work, depending
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.verification import random_draws
from onnxsmith.verification.run import run

_SIZED_BY = {
    "ConstantOfShape": (0,), "Expand": (1,), "Pad": (1,), "Reshape": (1,), "Resize": (2, 3), "Slice": (1, 2, 3, 4),
    "Tile": (1,),
}  # fmt: skip
"""Maps operators to the operands from which the shapes of their results follow. The TorchScript exporter reorders the
sizes of a Pad by a Reshape, a Slice and a Transpose, which shape inference does not follow."""


def settle(work: Work) -> str:
    """Replaces these operands in the main graph, and returns a note. Leaves them if the nodes cannot be run here."""
    graph = work.model.graph
    places: dict[ir.Value, list[tuple[ir.Node, int]]] = {}
    for node in graph:
        for index in _SIZED_BY.get(node.op_type, ()) if not node.domain else ():
            value = node.inputs[index] if index < len(node.inputs) else None
            if value is not None and value.producer() is not None and const_tensor(value) is None:
                places.setdefault(value, []).append((node, index))
    free = {one for node in random_draws.nodes(work.model) for one in node.outputs} | set(graph.inputs)
    given = depending(work.model, free) if places else set()
    wanted = {value.name or "": value for value in places if value not in given}
    if not wanted:
        return ""
    try:
        found = run(cut(work.model, (), list(wanted)).model, {}).outputs
    except OnnxsmithError:
        return ""
    made = Sizes(work, lambda node: None)
    for name, value in wanted.items():
        constant = made.constant(found[name])
        for node, index in places[value]:
            node.replace_input_with(index, constant)
    work.change()  # the shapes are inferred again
    return f"{several(len(wanted), 'operand')} that nodes computed from constants became constants"
