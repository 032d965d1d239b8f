"""Removes the declared shapes of intermediate tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.inlining import inlined


class DeclaredShapes(Fix):
    """A target that infers shapes itself stops if a declared shape is false, or gives a dimension another name."""

    rank = 6

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made, found = cloned(model), False
        for graph in walk.graphs(made):
            kept = set(graph.outputs)
            for node in graph:
                for value in node.outputs:
                    if value.shape is not None and value not in kept:
                        value.shape, found = None, True
                        if node.domain in ("", "ai.onnx"):  # a type without a shape breaks the specification
                            value.type = None
        if found:
            yield "without the declared shapes of intermediate tensors", made
        if found and made.functions:
            flat, reason = inlined(made)
            if not reason:
                yield (
                    "without the declared shapes of intermediate tensors, local functions replaced by their bodies",
                    flat,
                )
