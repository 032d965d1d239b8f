"""Assigns the arguments of a call to the operands and attributes of an operator's schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import nearest, several
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure.schema import Parameter, Schema


@dataclass(frozen=True)
class Operand:
    """One operand of a call. `label` is its formal name; `formal` is its formal parameter, None without a schema."""

    label: str
    given: Any
    formal: Parameter | None


def is_tensor(given: Any) -> bool:
    """Whether this is a tensor of a graph: a handle, or a value of onnx-ir."""
    return isinstance(given, Tensor | ir.Value)


def assigned(
    op: str, schema: Schema | None, positional: Sequence[Any], keywords: Mapping[str, Any], where: str
) -> tuple[list[Operand], dict[str, Any]]:
    """Returns the operands in order, None for a missing optional operand, and the other arguments, which are
    attributes.

    Raises: OnnxsmithError: `build/operands` if there are too few or too many operands, or one is given twice.
    """
    if schema is None:
        operands = [Operand(f"operand {index}", given, None) for index, given in enumerate(positional)]
        return operands, dict(keywords)
    given = _spread(schema, positional)
    formals = schema.inputs
    if len(given) > len(formals) and not (formals and formals[-1].variadic):
        raise _too_many(op, schema, given, where)
    named = {formal.name: index for index, formal in enumerate(formals) if not formal.variadic}
    slots: dict[int, Any] = dict(enumerate(given))
    for name in keywords.keys() & named.keys():
        if named[name] < len(given):
            raise problem(
                "build/operands",
                f"{op} gets the operand {name} twice: by place and by name",
                where=where,
                fix=f"leave {name}=… out, or give it by name only",
            )
        slots[named[name]] = keywords[name]
    attributes = {name: value for name, value in keywords.items() if name not in named}
    variadic = formals[-1].name if formals and formals[-1].variadic else None
    if variadic in attributes and variadic not in schema.attributes:
        found = attributes.pop(variadic)
        for index, one in enumerate(found if isinstance(found, list | tuple) else [found]):
            slots[len(formals) - 1 + index] = one
    operands = [
        Operand(schema.input_name(index), slots.get(index), schema.input(index))
        for index in range(max(slots, default=-1) + 1)
    ]
    _refuse_missing(op, schema, operands, where)
    while operands and operands[-1].given is None:
        operands.pop()
    return operands, attributes


def _spread(schema: Schema, positional: Sequence[Any]) -> list[Any]:
    """Takes `Concat([a, b])` as `Concat(a, b)`."""
    if len(positional) == 1 and schema.inputs and schema.inputs[0].variadic and isinstance(positional[0], list | tuple):
        return list(positional[0])
    return list(positional)


def _refuse_missing(op: str, schema: Schema, operands: Sequence[Operand], where: str) -> None:
    for index, formal in enumerate(schema.inputs):
        if formal.optional:
            continue
        if formal.variadic:
            count = len(operands) - index
            if count < formal.least:
                raise problem(
                    "build/operands",
                    f"{op} gets {several(max(count, 0), 'operand')} for {formal.name}, not {formal.least} or more",
                    where=where,
                    fix=f"call g.{op}(first, second, …)",
                )
            missing = next((one for one in operands[index:] if one.given is None), None)
        else:
            absent = Operand(formal.name, None, formal)
            operand = operands[index] if index < len(operands) else absent
            missing = operand if operand.given is None else None
        if missing is not None:
            attribute = formal.name in schema.attributes
            raise problem(
                "build/operands",
                f"{op} lacks the operand {missing.label}",
                where=where,
                why=f"its operands are {signature(schema)}" + ("; None is for optional ones" if not attribute else ""),
                fix=f"give it by place or as {formal.name}=…",
            )


def _too_many(op: str, schema: Schema, given: Sequence[Any], where: str) -> OnnxsmithError:
    free = [name for name in schema.attributes if schema.attributes[name] != ir.AttributeType.GRAPH]
    extra = given[len(schema.inputs)]
    by_name = f"; attributes are given by name: {free[0]}={extra!r}" if free and not is_tensor(extra) else ""
    return problem(
        "build/operands",
        f"{op} gets {several(len(given), 'operand')}, but accepts at most {len(schema.inputs)}",
        where=where,
        why=f"its operands are {signature(schema)}",
        fix=f"give the first {several(len(schema.inputs), 'operand')} only{by_name}",
    )


def signature(schema: Schema) -> str:
    """Returns the operands of a schema as text: `X, W, B (optional)`."""
    marks = {True: " (optional)", False: ""}
    names = [one.name + ("…" if one.variadic else marks[one.optional]) for one in schema.inputs]
    return ", ".join(names) or "none"


def listed(names: Iterable[str]) -> str:
    """Joins names with commas."""
    return ", ".join(names)


_SYNONYMS = {
    "dim": ("axis", "axes"), "dims": ("axes", "perm"), "padding": ("pads",), "stride": ("strides",),
    "dilation": ("dilations",), "groups": ("group", "num_groups"), "keepdim": ("keepdims",), "eps": ("epsilon",),
    "kernel_size": ("kernel_shape",), "p": ("ratio",), "negative_slope": ("alpha",),
    "weight": ("W", "scale", "Scale"), "bias": ("B",),
    "dtype": ("to",), "axis": ("axes",), "axes": ("axis",), "upscale_factor": ("blocksize",),
}  # fmt: skip
"""Maps names of attributes and operands in torch and numpy to their ONNX names."""


def near_argument(name: str, names: Iterable[str]) -> str | None:
    """Returns the argument that a wrong name most likely means; None if no name is similar."""
    known = list(names)
    meant = next((one for one in _SYNONYMS.get(name, ()) if one in known), None)
    return meant or nearest(name, known)
