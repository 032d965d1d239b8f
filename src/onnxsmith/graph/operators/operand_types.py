"""Finds the dtypes of operands. Tensors and arrays bind the type variables of the schema; Python values then follow
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators import constant_tensors, dtypes
from onnxsmith.graph.operators.operands import Operand
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.schema import Parameter
from onnxsmith.graph.structure.type_texts import of_dtype, type_text

_VECTORS = {"K", "axes", "starts", "ends", "steps", "split", "shape", "repeats", "pads", "sizes", "scales"}
"""Lists operands that are vectors in every operator. So a single Python number becomes a vector of one element."""

Typed = ir.Value | ir.TensorProtocol | None
"""Is an operand: a value of the graph, a tensor that becomes a constant, or None for a missing operand."""


def typed(op: str, operands: Sequence[Operand], values: Sequence[ir.Value | None], where: str) -> list[Typed]:
    """Checks the dtypes of the operands and returns them. `values` are the operands that are values of the graph, None
    for the others.

    Raises:
        OnnxsmithError: `build/type` if a dtype is not allowed, or two operands of one type variable differ;
            `build/constant` if a Python value does not fit.
    """
    found: list[Typed] = list(values)
    bound: dict[str, tuple[str, Operand]] = {}
    for index, operand in enumerate(operands):
        if found[index] is None and operand.given is not None and constant_tensors.is_array(operand.given):
            found[index] = constant_tensors.of_array(operand.given, f"{op}: {operand.label}", where)
        held = found[index]
        if held is not None:
            type_ = type_text(held) if isinstance(held, ir.Value) else of_dtype(held.dtype)
            _check(op, operand, type_, bound, where)
    for index, operand in enumerate(operands):
        if found[index] is None and operand.given is not None:
            found[index] = _constant(op, operand, bound, where)
    return found


def _check(op: str, operand: Operand, type_: str, bound: dict[str, tuple[str, Operand]], where: str) -> None:
    """Refuses a type that the operand's schema does not allow, and binds its type variable."""
    formal = operand.formal
    if formal is None:
        if type_ and _is_float(type_):
            bound.setdefault("", (type_, operand))
        return
    if not type_:
        return
    if formal.types and type_ not in formal.types:
        raise _not_allowed(op, operand, formal, type_, where)
    if formal.mixed:
        return
    first, other = bound.setdefault(formal.type, (type_, operand))
    if first != type_:
        raise _differs(op, operand, type_, first, other, where)


def _constant(op: str, operand: Operand, bound: dict[str, tuple[str, Operand]], where: str) -> ir.TensorProtocol:
    formal, what, given = operand.formal, f"{op}: {operand.label}", operand.given
    if not constant_tensors.is_python(operand.given):
        raise problem(
            "build/operands",
            f"{what} is {_a(operand.given)}",
            where=where,
            why="operands are tensors of the graph, numpy arrays, Python numbers, texts, and lists of these",
            fix="give a numpy array: tensor.numpy() of torch, np.asarray(…) of others",
        )
    try:
        kind = constant_tensors.kind_of(operand.given)
    except ValueError:
        kind = ""
    demanded: str | None = None
    if formal is not None:
        demanded = next(iter(formal.types)) if len(formal.types) == 1 else None
        if formal.type in bound and not formal.mixed:
            demanded = bound[formal.type][0]
    elif kind == "f" and "" in bound:
        demanded = bound[""][0]
    if demanded is not None and demanded.startswith("tensor("):
        dtype: ir.DataType | None = ir.DataType[demanded[len("tensor(") : -1].upper()]
    else:
        dtype = (
            constant_tensors.usual(operand.given, formal.types if formal is not None else frozenset()) if kind else None
        )
        dtype = dtype or constant_tensors.usual(operand.given, frozenset())
    assert dtype is not None
    if formal is not None and formal.name in _VECTORS and not isinstance(given, list | tuple):
        given = [given]
    made = constant_tensors.of_python(given, dtype, what, where)
    _check(op, operand, of_dtype(made.dtype), bound, where)
    return made


def _not_allowed(op: str, operand: Operand, formal: Parameter, type_: str, where: str) -> OnnxsmithError:
    allowed = sorted(plain(one) for one in formal.types)
    like = next((one for one in ("float32", "int64", "bool", "uint8") if one in allowed), allowed[0])
    shown = allowed if len(allowed) <= 8 else [*allowed[:8], "…"]
    newer = next((since for since in schema.versions(op, "") if _takes(op, since, formal.name, type_)), 0)
    return problem(
        "build/type",
        f"{op}: {operand.label} is of {plain(type_)}",
        where=where,
        why=f"the operator accepts {', '.join(shown)} there",
        fix=f"raise the opset first: `onnxsmith opset MODEL {newer} -o newer.onnx`"
        if newer
        else _conversion(operand, like),
    )


def _takes(op: str, opset: int, name: str, type_: str) -> bool:
    """Whether the operator accepts a type for an operand or a result in an opset."""
    found = schema.find(op, "", opset)
    return found is not None and any(one.name == name and type_ in one.types for one in (*found.inputs, *found.outputs))


def _differs(op: str, operand: Operand, type_: str, first: str, other: Operand, where: str) -> OnnxsmithError:
    to_float = _is_float(type_) and not _is_float(first)  # floats as integers would lose their fractions
    return problem(
        "build/type",
        f"{op}: {operand.label} is of {plain(type_)}, but {other.label} is of {plain(first)}",
        where=where,
        why="the operator needs both of one type; ONNX converts nothing by itself",
        fix=_conversion(other, plain(type_)) if to_float else _conversion(operand, plain(first)),
    )


def _conversion(operand: Operand, dtype: str) -> str:
    if constant_tensors.is_array(operand.given):
        return f'convert the array: {operand.label} = array.astype("{dtype}")'
    if constant_tensors.is_python(operand.given):
        return f'give it a dtype: g.constant({operand.given!r}, "{dtype}")'
    name = getattr(operand.given, "name", None) or "tensor"
    return f'convert it: g.Cast({name}, to="{dtype}")'


def plain(type_: str) -> str:
    """Returns `float32` for `tensor(float)`; returns other types as they are."""
    name = type_.removeprefix("tensor(").removesuffix(")").upper()
    if type_.startswith("tensor(") and name in ir.DataType.__members__:
        return dtypes.shown(ir.DataType[name]) or type_
    return type_


def _is_float(type_: str) -> bool:
    return type_ in ("tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bfloat16)")


def _a(given: Any) -> str:
    if isinstance(given, list | tuple):
        odd = next((one for one in given if not constant_tensors.is_python(one)), given)
        return f"a list with {type(odd).__module__}.{type(odd).__qualname__}"
    return f"of Python's type {type(given).__module__}.{type(given).__qualname__}"
