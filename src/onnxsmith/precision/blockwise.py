"""Writes the constant matrices of a model in blocks of 4 or 8 bits, with operators for which runtimes have kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.forms.base import WeightForm
from onnxsmith.precision.scaled_blocks import Array, Blocks
from onnxsmith.precision.stored_weights import Stored, stored

CONTRIB = "com.microsoft"
_IR_VERSION = 10
"""The first IR version with tensors of 4 bits (onnx 1.16)."""
_FOUR = 4
_EIGHT_BITS = 4
"""The accuracy level of products with 8-bit weights. At level 0 onnxruntime has no kernel for them, and takes twice the
time of float32 for many rows, 25 times for one row."""
_BIAS = 2
"""The index of the bias among the inputs of Gemm."""


def written(model: ir.Model, form: WeightForm, blocks: Mapping[str, Blocks], level: int) -> ir.Model:
    """Returns a copy of the model that stores the matrix of each node named in `blocks` as these blocks. `level` is the
    accuracy level of MatMulNBits: 4 computes with activations of 8 bits, 0 with floats."""
    made = cloned(model)
    made.ir_version = max(made.ir_version or 0, _IR_VERSION)
    writer = _Writer(made, form, level)
    for one in [one for one in stored(made, form) if one.name in blocks]:
        writer.write(one, blocks[one.name])
    _drop_unread(made)
    return made


class _Writer:
    """Writes blocks into a model. Blocks that several nodes share (the same object) are written once."""

    def __init__(self, model: ir.Model, form: WeightForm, level: int) -> None:
        self._model, self._form, self._level = model, form, level
        self._names = Names(model)
        self._made: dict[tuple[int, str], ir.Value] = {}
        self._kept: list[Blocks] = []  # keys of `_made` are ids: the objects must stay alive

    def write(self, one: Stored, blocks: Blocks) -> None:
        """Replaces the node by nodes with the same result."""
        if not one.is_product:
            nodes = [self._lookup(one, blocks)] if one.is_table else self._rows(one, blocks)
            self._replace(one.node, nodes)
            return
        nodes = self._standard(one, blocks) if self._form.standard else [self._operator(one, blocks)]
        bias = one.node.inputs[_BIAS] if len(one.node.inputs) > _BIAS else None
        if bias is not None:
            product = nodes[-1].outputs[0]
            product.name = self._names.free(f"{one.node.outputs[0].name}_product")
            nodes.append(ir.Node("", "Add", [product, bias], name=f"{one.name}_bias"))
        self._replace(one.node, nodes)

    def _operator(self, one: Stored, blocks: Blocks) -> ir.Node:
        self._model.opset_imports.setdefault(CONTRIB, 1)
        numbers = {"K": blocks.rows, "N": blocks.columns, "bits": blocks.bits, "block_size": blocks.block}
        level = _EIGHT_BITS if blocks.bits > _FOUR else self._level
        if level:
            numbers["accuracy_level"] = level
        held = {"": blocks.data, "scales": blocks.scales, "zeros": blocks.packed_zeros()}
        weights = self._constants(one, blocks, "product", held)
        return ir.Node(CONTRIB, "MatMulNBits", [one.node.inputs[0], *weights], _integers(numbers), name=one.name)

    def _lookup(self, one: Stored, blocks: Blocks) -> ir.Node:
        self._model.opset_imports.setdefault(CONTRIB, 1)
        numbers = {"gather_axis": 0, "quantize_axis": 1, "block_size": blocks.block, "bits": blocks.bits}
        data, zeros = blocks.table()
        table, *rest = self._constants(one, blocks, "table", {"": data, "scales": blocks.scales, "zeros": zeros})
        operands = [table, one.node.inputs[1], *rest]
        return ir.Node(CONTRIB, "GatherBlockQuantized", operands, _integers(numbers), name=one.name)

    def _rows(self, one: Stored, blocks: Blocks) -> list[ir.Node]:
        """Slices the table before dequantizing, so that no run converts the whole table to floats."""
        numbers, scales = blocks.signed()
        assert one.value.const_value is not None
        line = scales[0].astype(one.value.const_value.dtype.numpy())
        table, factors = self._constants(one, blocks, "rows", {"": numbers, "line": line})
        taken = ir.Node("", "Slice", [table, *one.node.inputs[1:]], name=one.name)
        taken.outputs[0].name = self._names.free(f"{one.node.outputs[0].name}_8_bits")
        wide = ir.Node(
            "", "DequantizeLinear", [taken.outputs[0], factors], _integers({"axis": 1}), name=f"{one.name}_wide"
        )
        return [taken, wide]

    def _standard(self, one: Stored, blocks: Blocks) -> list[ir.Node]:
        key = id(blocks), "dequantized"
        if key not in self._made:
            numbers, scales = blocks.signed()
            assert one.value.const_value is not None
            weights = self._constants(
                one, blocks, "signed", {"": numbers, "turned": scales.astype(one.value.const_value.dtype.numpy())}
            )
            attributes = _integers({"axis": 0, "block_size": blocks.block})
            node = ir.Node("", "DequantizeLinear", weights, attributes, name=f"{one.name}_weight")
            node.outputs[0].name = self._names.free(f"{one.value.name}_dequantized")
            node.outputs[0].type, node.outputs[0].shape = one.value.type, ir.Shape((blocks.rows, blocks.columns))
            self._made[key] = node.outputs[0]
            self._model.graph.insert_before(self._model.graph[0], node)  # it reads constants only
        return [ir.Node("", "MatMul", [one.node.inputs[0], self._made[key]], name=one.name)]

    def _constants(self, one: Stored, blocks: Blocks, kind: str, arrays: Mapping[str, Array | None]) -> list[ir.Value]:
        """Returns initializers of the main graph with these arrays; nodes with the same blocks share them. `kind` tells
        apart the layouts of the numbers. The scales are the same in every layout, and get the dtype of the weight."""
        self._kept.append(blocks)
        assert one.value.const_value is not None
        dtype = one.value.const_value.dtype.numpy()
        values = []
        for name, array in arrays.items():
            key = id(blocks), name if name == "scales" else f"{kind}.{name}"
            if array is not None and key not in self._made:
                wanted = array.astype(dtype) if name == "scales" else array
                wish = f"{one.value.name}_{name or f'{blocks.bits}_bits'}"
                self._made[key] = self._constant(wish, wanted)
            if array is not None:
                values.append(self._made[key])
        return values

    def _constant(self, wish: str, array: Array) -> ir.Value:
        name = self._names.free(wish)
        tensor = ir.tensor(np.ascontiguousarray(array), name=name)
        value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
        self._model.graph.initializers[name] = value
        return value

    def _replace(self, node: ir.Node, nodes: list[ir.Node]) -> None:
        graph, result = node.graph, node.outputs[0]
        assert graph is not None
        for one in nodes:
            one.outputs[0].type, one.outputs[0].shape = result.type, result.shape
            if one.op_type == "Slice":
                one.outputs[0].type = ir.TensorType(ir.DataType.INT8)
        graph.insert_after(node, nodes)
        last, name = nodes[-1].outputs[0], result.name
        result.replace_all_uses_with(last, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        last.name = name


def _integers(numbers: Mapping[str, int]) -> Iterable[ir.Attr]:
    return [ir.AttrInt64(name, number) for name, number in numbers.items()]


def _drop_unread(model: ir.Model) -> None:
    """Removes Transposes and initializers that nothing reads any more."""
    for graph in walk.graphs(model):
        for node in [one for one in graph if one.op_type == "Transpose" and not one.domain]:
            value = node.outputs[0]
            if not value.uses() and not value.is_graph_output():
                graph.remove(node, safe=True)
    for graph in walk.graphs(model):
        for name, value in list(graph.initializers.items()):
            if not value.uses() and not value.is_graph_output():
                del graph.initializers[name]
