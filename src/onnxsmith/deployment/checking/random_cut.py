"""Finds where a model can be cut so that its random numbers become inputs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.structure import walk


def random_cut(model: ir.Model, drawn: Sequence[ir.Node]) -> tuple[str, ...]:
    """Returns the tensors from which the model computes its outputs if it is given the results of the `drawn` nodes:
    these results, and the graph inputs that are still read. Returns no tensor if there is no such cut: a node draws in
    a branch, a loop body or a function, or its result is an output as it is."""
    if any(node.graph is not model.graph for node in drawn):
        return ()
    results = {value for node in drawn for value in node.outputs}
    if results & set(model.graph.outputs):
        return ()
    starts = results | {value for value in model.graph.inputs if value.const_value is None}
    return tuple(sorted(value.name or "" for value in walk.upstream(model.graph.outputs, results) & starts))
