"""Removes unused graph inputs, and turns weights into graph inputs."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from onnxsmith.graph.structure.model_copy import cloned

WEIGHTLESS = "onnxsmith.weights"
"""Is the metadata key that marks a model without its weights."""


def drop_unused_inputs(model: ir.Model) -> tuple[str, ...]:
    """Removes unread graph inputs, in place, and returns their names."""
    unused = [value for value in model.graph.inputs if not value.uses() and not value.is_graph_output()]
    for value in unused:
        model.graph.inputs.remove(value)
    return tuple(value.name or "" for value in unused)


def without_weights(model: ir.Model, weights: Collection[str]) -> ir.Model:
    """Returns a copy in which the initializers named `weights` are graph inputs without a default, after the other
    inputs."""
    copy = cloned(model)
    left_out = [value for name, value in copy.graph.initializers.items() if name in weights]
    for value in left_out:
        assert value.name is not None
        del copy.graph.initializers[value.name]
        value.const_value = None
        copy.graph.inputs.append(value)
    copy.metadata_props[WEIGHTLESS] = f"left out: {len(left_out)} weights are inputs of the graph"
    return copy
