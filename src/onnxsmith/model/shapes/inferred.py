"""Infers shapes with symbols: every shape that follows from the graph inputs.

The engine is onnx-shape-inference, an alpha release. It is therefore pinned and covered by a contract test, and a
failure of the engine is a note, never a failure of the caller."""

from __future__ import annotations

import itertools

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.shapes import odd_names, sound_shapes
from onnxsmith.seams import shape_engine


def inferred(model: ir.Model) -> tuple[ir.Model, str | None]:
    """Returns a copy of `model` (weights shared) with inferred shapes, and a note on failure, else None.

    Declared dimensions without a meaning (`?`, -1) are unknown in the copy; `model` itself keeps them.
    """
    copy = cloned(model)
    return copy, infer_in_place(copy)


def infer_in_place(model: ir.Model) -> str | None:
    """Infers shapes in a model that nobody else holds, as `inferred` does in a copy; returns a note on failure."""
    _forget_nameless(model)
    return infer(model)


def infer(model: ir.Model) -> str | None:
    """Infers shapes in `model` itself, and returns a note on failure, else None. Use it on a copy made by `inferred`
    after a change: known shapes stay, and new symbols get unused names."""
    defaults = {v: v.const_value for graph in walk.graphs(model) for v in graph.inputs if v.const_value is not None}
    try:
        for value in defaults:
            value.const_value = None  # a default: the caller may replace it, so no shape may depend on it
        context = sound_shapes.context(model)
        with odd_names.renamed(model), shape_engine.walking():
            context.reserve_symbol_names(shape_engine.symbol_names(model.graph))
            shape_engine.walk(
                context, model.graph, model_functions=model.functions, inference_cache={}, op_function_cache={}
            )
            shape_engine.adopt_declared_names(context, model.graph)
    except Exception as error:  # noqa: BLE001 — an alpha engine may raise anything; what it found so far stays
        return f"only some shapes are known: {type(error).__name__}: {error}"
    finally:
        for value, tensor in defaults.items():
            value.const_value = tensor
    return None


def _forget_nameless(model: ir.Model) -> None:
    inputs = (value for graph in walk.graphs(model) for value in graph.inputs)
    outputs = (value for node in walk.all_nodes(model) for value in node.outputs)
    for value in itertools.chain(inputs, outputs):
        shape = value.shape
        if shape is None or all(sound_shapes.is_sound(dim) for dim in shape):
            continue
        value.shape = ir.Shape([dim if sound_shapes.is_sound(dim) else None for dim in shape])
