"""Reuses the inferred results of an earlier node that is alike. A model of many equal layers has few different nodes.

Two nodes are alike if a rule of shape inference cannot tell them apart. A rule reads the operator, its attributes, and
the dtypes, shapes, small constants and known integers of its operands. Names of dimensions count, names of values do
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import onnx_ir as ir

from onnxsmith.base.seams.shape_engine import SYM_DATA_KEY, Context
from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.single_node import by_rule
from onnxsmith.graph.structure.tensor_keys import contents

_MOST = 64
"""Limits the elements of a constant that is a part of a key. A choice: shapes, axes and scales are far shorter."""
_WEIGHTED = frozenset(
    {
        *("Add", "Conv", "ConvTranspose", "DequantizeLinear", "Div", "Gather", "Gemm", "MatMul", "MatMulInteger"),
        *("Mul", "PRelu", "QuantizeLinear", "Sub", "Transpose", "Where"),
    }
)
"""Lists operators that may have longer constants as operands, because their rules read only dtype and shape. Rules of
other operators may read every element, such as the rule of Unique."""
_PLAIN = frozenset({ir.AttributeType.FLOAT, ir.AttributeType.INT, ir.AttributeType.STRING})
_LISTS = frozenset({ir.AttributeType.FLOATS, ir.AttributeType.INTS, ir.AttributeType.STRINGS})


class _UniqueError(Exception):
    """Raised for a node that is not compared with other nodes."""


class _Found(NamedTuple):
    """The inferred facts about one result. `held` are its known integers in the engine's form."""

    shape: ir.Shape | None
    dtype: ir.DataType | None
    noted: str | None
    held: Any


class Alike:
    """The inferred results of nodes without branches, by everything that a rule reads of a node. May serve several
    inferences of a model, because it holds dtypes, dimensions and small constants, and no values of the graph.

    Always inferred separately: nodes whose results get a dimension with a new name, nodes whose inference fails, and
    nodes with long constants (see `_WEIGHTED`), operands that are no tensors, or results that are partly known.
    """

    def __init__(self) -> None:
        self._found: dict[object, tuple[_Found, ...]] = {}
        self._constants: dict[int, tuple[ir.TensorProtocol, object]] = {}
        """Keys of small tensors by their `id`. Each tensor is kept, so that no other tensor can get the same `id`."""

    def infer(self, context: Context, node: ir.Node, failed: Callable[[Exception], None]) -> bool:
        """Gives the results of a node the facts of an earlier node that is alike; otherwise infers the node as
        `by_rule` does."""
        try:
            key = self._key(context, node)
        except _UniqueError:
            return by_rule(context, node, failed)
        found = self._found.get(key)
        if found is not None:
            for value, one in zip(node.outputs, found, strict=True):
                _give(context, value, one)
            return True
        before, errors = context.names_made, list[Exception]()
        known = by_rule(context, node, errors.append)
        for error in errors:
            failed(error)
        if known and not errors and context.names_made == before:
            self._found[key] = tuple([_known(context, value) for value in node.outputs])
        return known

    def _key(self, context: Context, node: ir.Node) -> object:
        if node.domain:
            raise _UniqueError
        op_type = node.op_type
        weighted = op_type in _WEIGHTED
        operands = node.inputs
        attributes = node.attributes.data
        return (
            op_type,
            context.opset,
            symbols.assumptions(),
            _attributes(attributes.values()) if attributes else None,
            tuple([None if value is None else self._operand(context, value, weighted) for value in operands]),
            tuple([_result(value) for value in node.outputs]),
        )

    def _operand(self, context: Context, value: ir.Value, weighted: bool) -> object:
        type_ = value.type
        if type_ is not None and type(type_) is not ir.TensorType:
            raise _UniqueError
        shape = value.shape
        dims = None if shape is None else written(shape)
        dtype = None if type_ is None else type_.dtype
        producer = value.producer()
        if producer is not None:
            if producer.op_type == "Constant" or value.const_value is not None:
                raise _UniqueError
            noted = value.metadata_props.get(SYM_DATA_KEY)
            return dims, dtype, noted, noted is not None and context.held(value) is not None
        if SYM_DATA_KEY in value.metadata_props:
            raise _UniqueError
        tensor = value.const_value
        held = None if tensor is None else self._constant(tensor, weighted)
        return dims, dtype, held, value.is_graph_input(), value.is_initializer()

    def _constant(self, tensor: ir.TensorProtocol, weighted: bool) -> object:
        known = self._constants.get(id(tensor))
        if known is not None:
            return known[1]
        if tensor.size > _MOST:
            if weighted:
                return tensor.dtype, tuple(tensor.shape)
            raise _UniqueError
        key = contents(tensor)
        if key is None:
            raise _UniqueError
        self._constants[id(tensor)] = (tensor, key)
        return key


def _attributes(attributes: Iterable[ir.Attr]) -> object:
    key: list[object] = []
    for attribute in attributes:
        kind = attribute.type
        if attribute.is_ref():
            raise _UniqueError
        if kind in _PLAIN:
            key.append((attribute.name, kind, attribute.value))
        elif kind in _LISTS:
            key.append((attribute.name, kind, tuple(attribute.value)))
        elif kind is ir.AttributeType.TENSOR and attribute.as_tensor().size <= _MOST:
            key.append((attribute.name, contents(attribute.as_tensor())))
        else:
            raise _UniqueError
    return tuple(key)


def _result(value: ir.Value) -> object:
    """Returns what is known about a result before inference: its dtype, and whether the result is left out."""
    type_ = value.type
    if value.shape is not None or (type_ is not None and type(type_) is not ir.TensorType):
        raise _UniqueError
    if SYM_DATA_KEY in value.metadata_props:
        raise _UniqueError
    return None if type_ is None else type_.dtype, bool(value.name)


def _known(context: Context, value: ir.Value) -> _Found:
    shape = value.shape
    shared = None if shape is None else ir.Shape(shape.dims, frozen=True)  # shared by many values
    return _Found(shared, value.dtype, value.metadata_props.get(SYM_DATA_KEY), context.held(value))


def _give(context: Context, value: ir.Value, found: _Found) -> None:
    value.shape = found.shape
    if found.dtype is not None and value.dtype != found.dtype:  # known before only if it was declared wrongly
        value.type = ir.TensorType(found.dtype)
    if found.noted is not None:
        value.metadata_props[SYM_DATA_KEY] = found.noted
    if found.held is not None:
        context.hold(value, list(found.held))
