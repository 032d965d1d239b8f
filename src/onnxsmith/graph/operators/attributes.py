"""Turns Python values into attributes of the types that the operator's schema demands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import nearest, shortened
from onnxsmith.graph.operators import constant_tensors, dtypes
from onnxsmith.graph.operators.function_attributes import PARAMETER, Parameter
from onnxsmith.graph.operators.operands import is_tensor, listed, near_argument
from onnxsmith.graph.structure.schema import Schema

OF_DTYPES = ("to", "dtype", "stash_type", "output_datatype", "output_dtype", "kernel_type", "softmax_precision")
"""Lists attributes that hold the number of a dtype. Their schemas only say "integer"."""
_TYPE = ir.AttributeType


def made(
    op: str, schema: Schema | None, given: Mapping[str, Any], where: str, *, rank: int | None = None
) -> list[ir.Attr]:
    """Makes the attributes of a node. None leaves an attribute out. Without a schema, the Python type decides. `rank`
    is that of the first operand: a window has two axes less.

    Raises: OnnxsmithError: `build/attribute` if the operator has no such attribute, a required one is missing, or the
        operator cannot take the value.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if schema is None:
        return [_guessed(op, name, value, where) for name, value in given.items()]
    for name in given:
        if name not in schema.attributes:
            raise _unknown(op, name, given[name], schema, where, rank)
    missing = [name for name in schema.required if name not in given]
    if missing:
        kind = _WANTED[schema.attributes[missing[0]]][0]
        raise problem(
            "build/attribute",
            f"{op} lacks the attribute {missing[0]!r}",
            where=where,
            why="the operator has no default for it",
            fix=f"add {missing[0]}=…, {kind}, to the call",
        )
    return [_made(op, name, schema.attributes[name], value, where, rank) for name, value in given.items()]


def _made(op: str, name: str, type_: ir.AttributeType, value: Any, where: str, rank: int | None) -> ir.Attr:
    if isinstance(value, Parameter):
        return _of(value, _made(op, name, type_, value.value, where, rank))
    if isinstance(value, ir.Attr):
        if value.type != type_ or value.name != name:
            raise _unfit(op, name, type_, value, where, rank)
        return value
    if is_tensor(value):
        raise problem(
            "build/attribute",
            f"the attribute {name!r} of {op} is a tensor of the graph",
            where=where,
            why="an attribute is fixed when the model is written",
            fix="give a Python value; a newer opset may take it as an operand, see `onnxsmith explain` of the operator",
        )
    if type_ == _TYPE.INT and name in OF_DTYPES and not isinstance(value, int | np.integer | float):
        value = int(dtypes.read(value, where))
    wanted = _WANTED.get(type_)
    converted = wanted[1](value) if wanted is not None else None
    if converted is None:
        raise _unfit(op, name, type_, value, where, rank)
    allowed = CHOICES.get((op, name)) or CHOICES.get(("", name), ())
    if allowed and converted not in allowed:
        near = nearest(str(converted).upper() if name == "auto_pad" else str(converted), allowed)
        raise problem(
            "build/attribute",
            f"{op} does not know {name}={converted!r}",
            where=where,
            why=f"it knows {', '.join(allowed)}",
            fix=f"write {name}={(near or allowed[0])!r}",
        )
    return ir.Attr(name, type_, converted)


def _guessed(op: str, name: str, value: Any, where: str) -> ir.Attr:
    """Returns an attribute of an operator without a schema."""
    if isinstance(value, Parameter):
        return _of(value, _guessed(op, name, value.value, where))
    if isinstance(value, ir.Attr):
        return value
    types: tuple[ir.AttributeType, ...] = (
        _TYPE.INT, _TYPE.FLOAT, _TYPE.STRING, _TYPE.INTS, _TYPE.FLOATS, _TYPE.STRINGS, _TYPE.TENSOR, _TYPE.GRAPH
    )  # fmt: skip
    empty = isinstance(value, list | tuple) and not value
    for type_ in () if empty else types:
        converted = _WANTED[type_][1](value)
        if converted is not None:
            return ir.Attr(name, type_, converted)
    raise problem(
        "build/attribute",
        f"the attribute {name!r} of {op} is {_said(value)}, whose type is not clear",
        where=where,
        why="no schema of this operator is installed, so the Python value decides the type",
        fix=f'give the attribute itself: {name}=onnx_ir.AttrInt64s("{name}", [])' if empty else "give numbers or texts",
    )


def _of(parameter: Parameter, attribute: ir.Attr) -> ir.Attr:
    """Marks the attribute as one that takes its value from a parameter of the function."""
    attribute.meta[PARAMETER] = parameter.name
    return attribute


def _unknown(op: str, name: str, value: Any, schema: Schema, where: str, rank: int | None) -> OnnxsmithError:
    names = [*schema.attributes, *(formal.name for formal in schema.inputs)]
    near = near_argument(name, names)
    attributes = (
        (f"the operator has the attributes {listed(schema.attributes)}")
        if schema.attributes
        else "it has no attributes"
    )
    operands = f"the operands {listed(formal.name for formal in schema.inputs)}" if schema.inputs else "no operands"
    return problem(
        "build/attribute",
        f"{op} has no attribute or operand {name!r}",
        where=where,
        why=f"{attributes} and {operands}",
        fix=f"write {near}={_numbers(op, near, value, rank) or '…'}" if near else f"leave {name} out",
    )


_WINDOW = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2}
"""Maps attributes of windows to the numbers that each axis of the window has."""


def _numbers(op: str, name: str, value: Any, rank: int | None) -> list[int] | None:
    """Returns the numbers of a window's attribute for a value as torch takes it: one number for all axes, or one for
    each axis. None if the attribute is no window's, or the count is unknown."""
    if name not in _WINDOW or op == "Pad" or rank is None or rank < 3:
        return None
    given = [value] * (rank - 2) if isinstance(value, int) else value
    each = _all(_int)(given)
    return each * _WINDOW[name] if each is not None and len(each) == rank - 2 else None


def _unfit(op: str, name: str, type_: ir.AttributeType, value: Any, where: str, rank: int | None) -> OnnxsmithError:
    wanted, _, example = _WANTED.get(type_, (f"a value of type {type_.name}", _nothing, ""))
    if type_ == _TYPE.INTS and isinstance(value, int):
        example = str(_numbers(op, name, value, rank) or [value] * 2 * _WINDOW.get(name, 1))
    return problem(
        "build/attribute",
        f"the attribute {name!r} of {op} is {_said(value)}, not {wanted}",
        where=where,
        fix=f"write {name}={example}" if example else f"give an onnx_ir.Attr for {name}, or use g.If, g.Loop, g.Scan",
    )


def _said(value: Any) -> str:
    return f"{shortened(repr(value), 60)} ({type(value).__name__})"


def _nothing(_: Any) -> None:
    return None


def _int(value: Any) -> int | None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    fits = isinstance(value, int | np.integer | np.bool_) and -(2**63) <= int(value) < 2**63
    return int(value) if fits else None


def _float(value: Any) -> float | None:
    """Returns the value as a float if it is in the range of float32, in which attributes are stored."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    number = float(value)
    return number if not math.isfinite(number) or abs(number) <= float(np.finfo(np.float32).max) else None


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None


def _all(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converted(value: Any) -> list[Any] | None:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if not isinstance(value, list | tuple | range):
            return None
        made = [convert(one) for one in value]
        return None if any(one is None for one in made) else made

    return converted


def _tensor(value: Any) -> ir.TensorProtocol | None:
    if constant_tensors.is_array(value):
        return constant_tensors.of_array(value, "the attribute", "")
    if constant_tensors.is_python(value):
        dtype = constant_tensors.usual(value, frozenset())
        return None if dtype is None else constant_tensors.of_python(value, dtype, "the attribute", "")
    return None


def _graph(value: Any) -> ir.Graph | None:
    return value if isinstance(value, ir.Graph) else None


def _type_and_shape(value: Any) -> ir.TypeAndShape | None:
    return value if isinstance(value, ir.TypeAndShape) else None


_WANTED: Mapping[ir.AttributeType, tuple[str, Callable[[Any], Any], str]] = {
    _TYPE.INT: ("a whole number", _int, "1"),
    _TYPE.FLOAT: ("a number within float32", _float, "1.0"),
    _TYPE.STRING: ("a text", _string, '"…"'),
    _TYPE.INTS: ("a list of whole numbers", _all(_int), "[1, 1]"),
    _TYPE.FLOATS: ("a list of numbers within float32", _all(_float), "[1.0]"),
    _TYPE.STRINGS: ("a list of texts", _all(_string), '["…"]'),
    _TYPE.TENSOR: ("an array", _tensor, "np.array([1.0], np.float32)"),
    _TYPE.GRAPH: ("a graph", _graph, ""),
    _TYPE.TYPE_PROTO: (
        "a type",
        _type_and_shape,
        "onnx_ir.TypeAndShape(onnx_ir.TensorType(onnx_ir.DataType.FLOAT), None)",
    ),
    _TYPE.SPARSE_TENSOR: ("a sparse tensor", _nothing, ""),
}


# Lists the texts that an attribute may hold, if the specification names them. Schemas have them in prose only.

_RNN = ("forward", "reverse", "bidirectional")

CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "auto_pad"): ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize",
    ),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("GridSample", "mode"): ("linear", "nearest", "cubic", "bilinear", "bicubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ScatterElements", "reduction"): ("none", "add", "mul", "max", "min"),
    ("ScatterND", "reduction"): ("none", "add", "mul", "max", "min"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("LSTM", "direction"): _RNN,
    ("GRU", "direction"): _RNN,
    ("RNN", "direction"): _RNN,
    ("RoiAlign", "mode"): ("avg", "max"),
    ("StringNormalizer", "case_change_action"): ("NONE", "LOWER", "UPPER"),
}  # fmt: skip
"""Lists the allowed texts by (operator, attribute). ("", attribute) stands for every operator."""
