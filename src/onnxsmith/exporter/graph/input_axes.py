"""Gives the axes of a graph's inputs the names that the user asked for, also where one axis follows from others."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure import dim_relations
from onnxsmith.graph.structure.signature import Signature, is_symbol


def name(model: ir.Model, asked: Signature) -> None:
    """Replaces the expression that a trace wrote for an axis, such as `32 - seq`, by the axis's name, and keeps the
    relation in the metadata: it says which sizes the model takes."""
    found = dict(dim_relations.relations(model))
    ports = {port.name: port for port in asked.inputs}
    for value in model.graph.inputs:
        port = ports.get(value.name or "")
        if value.shape is None or port is None or port.shape is None:
            continue
        own = list(dims.written(value.shape))
        for axis, wanted in enumerate(port.shape):
            traced = own[axis]
            if not isinstance(traced, str) or is_symbol(traced) or not isinstance(wanted, str) or not is_symbol(wanted):
                continue
            if wanted not in dims.names_in(traced):
                own[axis] = wanted
                found.setdefault(wanted, traced)
        value.shape = ir.Shape(own)
    dim_relations.record(model, found)
