"""Shapes with symbols: every value's shape as far as it follows from the inputs.

The engine is onnx-shape-inference, which is alpha, so it is pinned and held to a contract test; a failure of the engine
is a note, never a failure of the caller.
"""

from __future__ import annotations

import itertools

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.shapes import sound_shapes
from onnxsmith.seams import shape_engine


def inferred(model: ir.Model) -> tuple[ir.Model, str | None]:
    """A copy of `model` (weights shared) with the shapes that follow from its inputs, and what went wrong, if anything.

    Declared dimensions that name nothing (`?`, -1) are unknown in the copy; `model` itself keeps them.
    """
    copy = cloned(model)
    _forget_nameless(copy)
    return copy, infer(copy)


def infer(model: ir.Model) -> str | None:
    """Adds what follows now to `model` itself, and says what went wrong, if anything. For the copy that `inferred` made
    once something in it has changed: what is known stays known, and new symbols never take a name that is there."""
    defaults = {v: v.const_value for graph in walk.graphs(model) for v in graph.inputs if v.const_value is not None}
    try:
        for value in defaults:
            value.const_value = None  # a caller may replace it, so nothing follows from it
        context = sound_shapes.context(model)
        context.reserve_symbol_names(shape_engine.symbol_names(model.graph))
        with shape_engine.walking():
            shape_engine.walk(
                context, model.graph, model_functions=model.functions, inference_cache={}, op_function_cache={}
            )
            shape_engine.adopt_declared_names(context, model.graph)
    except Exception as error:  # noqa: BLE001 — an alpha engine may raise anything; what it found so far stays
        return f"shapes are known in part only: {type(error).__name__}: {error}"
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
