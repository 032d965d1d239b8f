"""Replaces Gemm with a constant weight by MatMul and Add, because 4-bit kernels exist for MatMul only."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned

_BIAS = 2
"""The index of the bias among the inputs of Gemm."""


def is_plain(node: ir.Node) -> bool:
    """Whether the node is a Gemm that equals a MatMul with a constant weight and an Add."""
    if node.op_type != "Gemm" or node.domain:
        return False
    numbers = {name: attribute.value for name, attribute in node.attributes.items()}
    weight = node.inputs[1]
    plain = numbers.get("alpha", 1.0) == numbers.get("beta", 1.0) == 1.0 and not numbers.get("transA", 0)
    return plain and weight is not None and weight.const_value is not None and not weight.is_graph_input()


def written_out(model: ir.Model, only: Collection[str] | None = None) -> ir.Model:
    """Returns a copy in which each plain Gemm, or only those named in `only`, is a MatMul of the same name and an
    Add."""
    made = cloned(model)
    names = Names(made)
    turned: dict[ir.Value, ir.Value] = {}
    """Maps a weight to its transposed form, which all of its readers share."""
    for node in [one for one in made.graph if is_plain(one) and (only is None or one.name in only)]:
        weight = node.inputs[1]
        assert weight is not None
        assert weight.const_value is not None
        matrix = weight
        is_turned = "transB" in node.attributes and node.attributes["transB"].as_int() != 0
        if is_turned and weight in turned:
            matrix = turned[weight]
        elif is_turned:
            array = np.ascontiguousarray(weight.const_value.numpy().T)
            name = names.free(f"{weight.name}_transposed")
            tensor = ir.tensor(array, name=name)
            matrix = ir.Value(
                name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape)
            )
            made.graph.initializers[name] = turned[weight] = matrix
        result, bias = node.outputs[0], node.inputs[2] if len(node.inputs) > _BIAS else None
        product = ir.Node("", "MatMul", [node.inputs[0], matrix], name=node.name)
        product.outputs[0].type, product.outputs[0].shape = result.type, result.shape
        nodes = [product]
        if bias is not None:
            product.outputs[0].name = names.free(f"{result.name}_product")
            nodes.append(ir.Node("", "Add", [product.outputs[0], bias], name=f"{node.name}_bias"))
            nodes[1].outputs[0].type, nodes[1].outputs[0].shape = result.type, result.shape
        last = nodes[-1].outputs[0]
        made.graph.insert_after(node, nodes)
        result.replace_all_uses_with(last, replace_graph_outputs=True)
        kept = result.name
        made.graph.remove(node, safe=True)
        last.name = kept
    for name, value in list(made.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del made.graph.initializers[name]
    return made
