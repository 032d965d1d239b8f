"""Remembers the types and shapes that a model declares while its copy has inferred ones."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import walk


class DeclaredTypes:
    """The types and shapes that a model declares. The copy gets them back in the end, so that inferred types and shapes
    do not become part of the file's interface."""

    def __init__(self, model: ir.Model, copy: ir.Model) -> None:
        pairs = list(zip(walk.graphs(model), walk.graphs(copy), strict=True))
        before, after = (walk.values_of(graphs) for graphs in zip(*pairs, strict=True))
        self._values = {new: (old.type, old.shape) for old, new in zip(before, after, strict=True)}
        self._outputs = [(after, [(one.type, one.shape) for one in before.outputs]) for before, after in pairs]

    def restore(self, copy: ir.Model) -> None:
        for value in walk.values_of(walk.graphs(copy)):
            if not value.is_initializer():
                value.type, value.shape = self._values.get(value, (None, None))
        for graph, outputs in self._outputs:
            for value, (type_, shape) in zip(graph.outputs, outputs, strict=True):
                value.type, value.shape = type_, shape
