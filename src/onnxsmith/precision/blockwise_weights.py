"""Finds the constant matrices of a model that can be stored in fewer bits, and writes them in blocks of 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.forms.base import WeightForm
from onnxsmith.precision.methods._gemm import is_plain
from onnxsmith.precision.scaled_blocks import Array, Blocks

FLOATS = {ir.DataType.FLOAT, ir.DataType.FLOAT16}
"""Dtypes of weights that MatMulNBits and DequantizeLinear can compute."""
_LEAST = 16
"""The smallest block of MatMulNBits (onnxruntime, ContribOperators.md)."""
_MATRIX = 2
_AXES = 3
"""The index of the axes among the inputs of Slice."""


@dataclass(frozen=True)
class Stored:
    """The constant matrix [rows, columns] of a node, held by `value`. A product sums over the rows. `by_columns` says
    that the value holds it transposed, as [columns, rows]. So is the table of a Gather: each of its rows is a column
    here. The table of a Slice is not transposed. `between` is the Transpose between the constant and the node, if there
    is one."""

    node: ir.Node
    value: ir.Value
    by_columns: bool
    between: ir.Node | None = None

    @property
    def name(self) -> str:
        """Returns the name of the node."""
        return self.node.name or ""

    @property
    def is_table(self) -> bool:
        """Whether the node looks rows up."""
        return self.node.op_type == "Gather"

    @property
    def is_slice(self) -> bool:
        """Whether the node slices successive rows, such as those of a table of positions."""
        return self.node.op_type == "Slice"

    @property
    def is_product(self) -> bool:
        """Whether the node multiplies with the matrix."""
        return not self.is_table and not self.is_slice

    @property
    def dims(self) -> tuple[int, ...]:
        """Returns the dimensions of the constant."""
        tensor = self.value.const_value
        assert tensor is not None
        return tuple(tensor.shape.numpy())

    @property
    def rows(self) -> int:
        """Returns the number of elements that a product sums over; for the table of a Gather, the number of elements in
        one of its rows."""
        return self.dims[-1] if self.by_columns else self.dims[-2]

    @property
    def columns(self) -> int:
        """Returns the number of output channels of a product; for the table of a Gather, the number of its rows."""
        return self.dims[-2] if self.by_columns else self.dims[-1]

    def array(self) -> Array:
        """Returns the matrix, float32 [rows, columns]."""
        assert self.value.const_value is not None
        held = np.asarray(self.value.const_value.numpy(), np.float32).reshape(self.dims[-2:])
        return held.T if self.by_columns else held

    def block(self, wanted: int, form: WeightForm) -> int | None:
        """Returns the size of the blocks, at most `wanted`. Returns None if no size fits, because some kernels need
        whole blocks. For a Slice, each column is one block."""
        if self.is_slice:
            return self.rows
        if self.is_table or form.standard:
            known = form.blocks if form.standard else (256, 128, 64, 32, _LEAST)
            return next((size for size in sorted(known, reverse=True) if size <= wanted and not self.rows % size), None)
        return min(wanted, max(_LEAST, 1 << (self.rows - 1).bit_length()))


def stored(model: ir.Model, form: WeightForm) -> Iterator[Stored]:
    """Yields the constant matrices of MatMul and Gemm, and the tables of Gather and Slice if the form stores tables.
    They come in the order of the model, branches and loop bodies included. Each node must have a name."""
    for node in walk.nodes(model.graph):
        found = _of(node, form)
        if found is not None:
            yield found


def _of(node: ir.Node, form: WeightForm) -> Stored | None:
    if node.domain or not node.inputs:
        return None
    if node.op_type == "Gather":
        value = node.inputs[0]
        at_rows = node.attributes.get_int("axis", 0) == 0
        is_table = form.tables and at_rows and value is not None and _is_weight(value)
        return Stored(node, value, True) if is_table and value is not None else None
    if node.op_type == "Slice":
        value = node.inputs[0]
        if value is None or not form.tables or not _is_weight(value) or not _takes_rows(node):
            return None
        return Stored(node, value, False) if value.dtype == ir.DataType.FLOAT else None  # float16 scales need opset 19
    if not (node.op_type == "MatMul" or is_plain(node)):
        return None
    value = node.inputs[1]
    turned = node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 1
    if value is not None and _is_weight(value):
        return Stored(node, value, turned)
    between = value.producer() if value is not None else None
    if between is None or between.op_type != "Transpose" or between.domain:
        return None
    source = between.inputs[0]
    is_turned = list(between.attributes.get_ints("perm", [1, 0])) == [1, 0]
    if source is None or not is_turned or not _is_weight(source) or len(source.const_value.shape) != _MATRIX:  # type: ignore[union-attr]
        return None
    return Stored(node, source, not turned, between)


def _takes_rows(node: ir.Node) -> bool:
    """Whether a Slice slices the first axis only."""
    axes = node.inputs[_AXES] if len(node.inputs) > _AXES else None
    held = const_tensor(axes) if axes is not None else None
    return held is not None and held.numpy().tolist() == [0]


def _is_weight(value: ir.Value) -> bool:
    tensor = value.const_value
    return tensor is not None and tensor.dtype in FLOATS and len(tensor.shape) >= _MATRIX


def reasons(model: ir.Model, form: WeightForm) -> Mapping[str, str]:
    """Returns the nodes whose matrix stays as it is, each with the reason."""
    layers = list(stored(model, form))
    nodes = {id(one.node) for one in layers} | {id(one.between) for one in layers if one.between is not None}
    finite: dict[int, bool] = {}
    found = {}
    for one in layers:
        said = _reason(one, form) or _shared(one, nodes)
        if not said and not finite.setdefault(id(one.value), bool(np.isfinite(one.array()).all())):
            said = "the weight contains NaN or infinity"
        if said:
            found[one.name] = said
    return found


def _reason(one: Stored, form: WeightForm) -> str:
    wanted = max(form.blocks)
    if not one.rows or not one.columns:
        return "its weight is empty"
    if any(dim != 1 for dim in one.dims[:-2]) or (len(one.dims) > _MATRIX and not one.is_product):
        return f"its weight has {len(one.dims)} dimensions, but kernels for 4 bits need a matrix"
    if len(one.dims) > _MATRIX and not _has_rank(one.node.inputs[0], len(one.dims)):
        return f"its weight has {len(one.dims)} dimensions, but its input may have fewer"
    block = one.block(wanted, form)
    if block is None:
        sizes = ", ".join(str(size) for size in form.blocks if size <= wanted)
        return (
            f"the {one.rows} rows of its weight are not a multiple of the block size "
            f"{sizes if form.standard else _LEAST}"
        )
    count = -(-one.rows // block)
    # In each block: numbers of 4 bits, a float32 scale and a zero point.
    nbytes = one.columns * count * (block // 2 + 4 + 1)
    whole = one.value.const_value.nbytes if one.value.const_value is not None else 0
    return "" if nbytes < whole else f"in blocks of {block}, its weight would not be smaller"


def _shared(one: Stored, nodes: set[int]) -> str:
    """Says why the float weight has to stay in the file anyway; "" if it need not."""
    if one.value.is_graph_input():
        return "its weight is also a graph input, so a caller may replace it"
    if one.value.is_graph_output():
        return "its weight is an output of the graph"
    other = next((use.node for use in one.value.uses() if id(use.node) not in nodes), None)
    if other is None and one.between is not None:
        other = next((use.node for use in one.between.outputs[0].uses() if id(use.node) not in nodes), None)
    return "" if other is None else f"{other.op_type} ({other.name}) also reads its weight, and needs the floats"


def _has_rank(value: ir.Value | None, least: int) -> bool:
    return value is not None and value.shape is not None and len(value.shape) >= least


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
