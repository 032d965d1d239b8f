"""Infers the results of nodes one by one, while they are added to a model."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams import shape_engine
from onnxsmith.graph.shapes import dims, known_integers, sound_shapes, standard_inference
from onnxsmith.graph.shapes.inference import Part
from onnxsmith.graph.shapes.single_node import by_rule, canonical
from onnxsmith.graph.shapes.symbols import Element
from onnxsmith.graph.structure import walk


class Growing:
    """Shape inference for a model to which nodes are added. Existing values keep their shapes."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._context = sound_shapes.context(model)
        self._context.reserve_symbol_names(dims.used_names(model))
        self._caches: dict[str, Any] = {"inference_cache": {}, "op_function_cache": {}}

    def infer(self, node: ir.Node, version: int) -> None:
        """Gives the results of a node their types and shapes. Does not walk branches and bodies.

        Raises:
            RefusedError: onnx's inference found a contradiction.
        """
        if walk.has_subgraphs(node):
            return
        self._context.opset_imports.update(self._model.opset_imports)
        found = standard_inference.infer(node, version, self._model.ir_version)
        with shape_engine.walking():
            if not by_rule(self._context, node, _ignored):
                self._by_function(node)
        for value, type_ in found.items():
            standard_inference.adopt(value, type_)

    def integers(self, value: ir.Value, elements: list[Element | None]) -> None:
        """Notes the elements of a small integer tensor."""
        known_integers.note(self._context, value, elements)

    def new_dim(self) -> ir.SymbolicDim:
        """Returns a dimension of unknown size, with a new name."""
        made: ir.SymbolicDim = self._context.new_symbolic_dim()
        return made

    def is_generated(self, dim: int | ir.SymbolicDim) -> bool:
        """Whether inference made up the name of a dimension."""
        return not isinstance(dim, int) and (dim.value is None or self._context.is_generated_symbol(dim.value))

    def _by_function(self, node: ir.Node) -> None:
        """Infers the call of a function, or an operator that the standard defines by other operators."""
        part: Any = Part([node])
        try:
            shape_engine.walk(self._context, part, model_functions=self._model.functions, **self._caches)
        except Exception as error:  # noqa: BLE001 — an alpha engine may raise anything; the shapes are then unknown
            _ignored(error)
        for value in node.outputs:
            value.shape = canonical(value.shape)


def _ignored(_: Exception) -> None:
    """Ignores an error of the engine: the result stays unknown, and onnx's inference is tried next."""
