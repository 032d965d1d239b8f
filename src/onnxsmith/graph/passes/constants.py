"""Turns Constant nodes into initializers."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.passes.base import May, Pass, PassResult, always
from onnxsmith.graph.structure import walk


class Constants(Pass):
    """Turns each Constant of the main graph into an initializer, so that rules see one kind of constant.

    Not changed: constants inside branches, bodies and functions (not every runtime accepts initializers there), string
    and sparse constants, constants that are graph outputs, and models before IR version 4, where each initializer must
    also be an input.
    """

    title = "Constant nodes into initializers"

    def run(self, model: ir.Model, may: May = always) -> PassResult:
        lifted: list[str] = []
        if not walk.has_own_initializers(model):
            return PassResult(model, False)
        graph = model.graph
        for node in list(graph):
            if node.op_type != "Constant" or node.domain or node.outputs[0].is_graph_output():
                continue
            value = node.outputs[0]
            tensor = const_tensor(value)
            if tensor is None or tensor.dtype == ir.DataType.STRING or value.name is None:
                continue
            new = ir.Value(
                name=f"{value.name}",
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(tensor.shape.numpy()),
                const_value=tensor,
            )
            value.name = f"{value.name}_constant"
            graph.register_initializer(new)
            value.replace_all_uses_with(new)
            graph.remove(node, safe=True)
            lifted.append(new.name or "")
        return PassResult(model, bool(lifted), lifted)
