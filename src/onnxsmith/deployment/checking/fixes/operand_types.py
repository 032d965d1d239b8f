"""Defines fixes for operators that a target takes, but not for the dtype of their operands."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix, Places, rewritten
from onnxsmith.graph.structure import provenance, schema
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.graph.surgery.node_insertion import Inserter


class IntegerGemm(Fix):
    """Writes a Gemm of integers as MatMul, Mul and Add.

    onnxruntime multiplies matrices of 32 and 64 bit integers by MatMul, but not by Gemm. The sums are the same.

    Refused:
    1. The values are not integers, or the Gemm has no known dtype.
    2. alpha or beta is not an integer: the Gemm then rounds, and the place of the rounding differs.
    """

    rank = 9

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Gemm", _product)
        if places.changed:
            yield "Gemm of integers replaced by MatMul and Add", places.model


def _product(node: ir.Node, write: Inserter) -> ir.Value | None:
    left, right = node.inputs[0], node.inputs[1]
    if left is None or right is None or left.dtype is None or not left.dtype.is_integer():
        return None
    alpha, beta = (node.attributes.get_float(name, 1.0) for name in ("alpha", "beta"))
    if alpha != round(alpha) or beta != round(beta):
        return None
    dtype = left.dtype.numpy()

    def scaled(value: ir.Value, factor: float) -> ir.Value:
        return value if factor == 1 else write.op("Mul", value, write.constant(round(factor), dtype))

    if node.attributes.get_int("transA", 0):
        left = write.op("Transpose", left, perm=[1, 0])
    if node.attributes.get_int("transB", 0):
        right = write.op("Transpose", right, perm=[1, 0])
    product = scaled(write.op("MatMul", left, right), alpha)
    added = node.inputs[2] if len(node.inputs) > 2 else None
    return product if added is None or beta == 0 else write.op("Add", product, scaled(added, beta))


_D = ir.DataType
_WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    **dict.fromkeys((_D.FLOAT16, _D.BFLOAT16), (_D.FLOAT,)),
    **dict.fromkeys((_D.INT8, _D.UINT8, _D.INT16, _D.UINT16), (_D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE)),
    **dict.fromkeys((_D.INT32, _D.UINT32), (_D.INT64, _D.DOUBLE)),
}
"""Lists the dtypes that hold every value of a dtype, the smallest first. No dtype holds every value of int64 that has
kernels of its own."""


class WiderTypes(Fix):
    """Computes refused operators in a wider dtype, between two Casts.

    A runtime has kernels for some dtypes of an operator. The wider dtype holds every value of the operands. The result,
    cast back, is the same unless an integer overflows; float16 and bfloat16 results are rounded once instead of several
    times. The comparison with the model decides.

    Refused:
    1. No operand has a dtype of which a wider one is known, such as float32 and int64.
    2. The operator has branches or bodies, or its schema is unknown.
    """

    rank = 35

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        for wide in (_D.FLOAT, _D.INT32, _D.INT64, _D.DOUBLE):
            places = Places.of(model)
            done = {
                f"{op} of {narrow.name.lower()}"
                for op in sorted(refused)
                for node in places.nodes(op)
                for narrow in _widened(places, node, wide)
            }
            if done:
                yield f"{', '.join(sorted(done))} is computed in {wide.name.lower()}, between Casts", places.model


def _widened(places: Places, node: ir.Node, wide: ir.DataType) -> set[ir.DataType]:
    """Computes the node in the wider dtype; returns the dtypes that it had, empty if the node stays as it is."""
    form = schema.find(node.op_type, node.domain, places.opset)
    bodies = any(one.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for one in node.attributes.values())
    if form is None or bodies:
        return set()
    narrow: dict[str, ir.DataType] = {}
    for index, value in enumerate(node.inputs):
        formal = form.input(index)
        if formal is not None and not formal.mixed and f"tensor({wide.name.lower()})" in formal.types:
            dtype = None if value is None else value.dtype
            if dtype is not None and wide in _WIDER.get(dtype, ()):
                narrow[formal.type] = dtype
    if narrow:
        _rewritten(places, node, form, narrow, wide)
    return set(narrow.values())


def _rewritten(places: Places, node: ir.Node, form: Schema, narrow: dict[str, ir.DataType], wide: ir.DataType) -> None:
    """Replaces the node by Casts, the node in the wider dtype, and Casts of its outputs."""
    write: Inserter = places.inserter(node)
    inputs = list(node.inputs)
    for index, value in enumerate(node.inputs):
        if value is not None and _variable(form.input(index)) in narrow:
            inputs[index] = write.op("Cast", value, to=wide.value)
    new = ir.Node(
        node.domain, node.op_type, inputs, list(node.attributes.values()), num_outputs=len(node.outputs), version=None
    )
    write.graph.insert_before(node, new)
    write.made.append(new)
    results = []
    for index, (value, old) in enumerate(zip(new.outputs, node.outputs, strict=True)):
        dtype = narrow.get(_variable(form.output(index)))
        value.name = write.name(f"wide_{index}") if old.name else ""
        results.append(value if dtype is None or not old.name else write.op("Cast", value, to=dtype.value))
    provenance.inherit(write.made, [node])
    for one in write.made:
        one.name = places.names.free(f"{node.name}_{one.op_type}") if node.name else None
    write.replace(results)
    places.changed += 1


def _variable(formal: Parameter | None) -> str:
    return "" if formal is None else formal.type
