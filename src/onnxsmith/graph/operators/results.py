"""Decides how many results a node has, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.graph.operators.naming import Naming
from onnxsmith.graph.structure.schema import Schema

EXPLICIT = "onnxsmith.explicit"
"""Is the key of a value's `meta` that says that the user chose its name."""

Wishes = list[str | bool]
"""Holds for each result its name, True for a generated name, or False for a result that is left out."""


def wished(
    op: str,
    schema: Schema | None,
    outputs: Any,
    operands: Sequence[ir.Value | ir.TensorProtocol | None],
    attributes: Sequence[ir.Attr],
    where: str,
) -> Wishes:
    """Turns `outputs`, a number or a list of names, into wishes. By default these are the required results.

    Raises:
        OnnxsmithError: `build/outputs`.
    """
    if outputs is None:
        return [True] * _usual(op, schema, operands, attributes, where)
    if isinstance(outputs, int) and not isinstance(outputs, bool) and outputs > 0:
        wishes: Wishes = [True] * outputs
    elif isinstance(outputs, str) and outputs:
        wishes = [outputs]
    elif isinstance(outputs, list | tuple) and outputs and all(one is None or isinstance(one, str) for one in outputs):
        wishes = [one or False for one in outputs]
    else:
        raise problem(
            "build/outputs",
            f"the outputs of {op} are {outputs!r}",
            where=where,
            fix="give their number (1 or more), or a list of names, with None for a result that is left out",
        )
    if schema is not None and not (schema.outputs and schema.outputs[-1].variadic):
        _refuse_wrong_number(op, schema, wishes, where)
    return wishes


def named(wishes: Wishes, schema: Schema | None, base: str, naming: Naming, where: str) -> list[str]:
    """Returns a free name for each result, "" for a result that is left out."""
    single = len(wishes) == 1
    names = []
    for index, wish in enumerate(wishes):
        if isinstance(wish, str):
            names.append(naming.exact(wish, where) if wish != base else base)
        elif not wish:
            names.append("")
        elif single:
            names.append(base)
        else:
            formal = schema.output(index) if schema is not None else None
            label = str(index) if formal is None or formal.variadic else formal.name
            names.append(naming.free(f"{base}.{label}", scoped=False))
    return names


def _usual(
    op: str,
    schema: Schema | None,
    operands: Sequence[ir.Value | ir.TensorProtocol | None],
    attributes: Sequence[ir.Attr],
    where: str,
) -> int:
    """Returns the number of results if the caller says nothing: that of the required results, or of all results if none
    is required."""
    if schema is None:
        return 1
    if schema.outputs and schema.outputs[-1].variadic:
        count = _counted(op, operands, attributes)
        if count is None:
            word = "num_outputs" if "num_outputs" in schema.attributes else "outputs"  # Split since opset 18
            raise problem(
                "build/outputs",
                f"the number of results of {op} is not clear",
                where=where,
                why="the operator has as many results as its caller wants",
                fix=f"add {word}=2 to g.{op}(…), or the number that you need",
            )
        return count
    required = sum(1 for formal in schema.outputs if not formal.optional)
    return required or len(schema.outputs)


def _counted(
    op: str, operands: Sequence[ir.Value | ir.TensorProtocol | None], attributes: Sequence[ir.Attr]
) -> int | None:
    """Returns the number of results that follows from the arguments of a Split; None for other operators."""
    parts = operands[1] if op == "Split" and len(operands) > 1 else None
    if parts is not None and parts.shape is not None and len(parts.shape) == 1 and isinstance(parts.shape[0], int):
        return parts.shape[0]
    given = {attribute.name: attribute for attribute in attributes}
    if op == "Split" and "num_outputs" in given:
        return given["num_outputs"].as_int()
    return len(given["split"].as_ints()) if op == "Split" and "split" in given else None


def _refuse_wrong_number(op: str, schema: Schema, wishes: Wishes, where: str) -> None:
    names = ", ".join(formal.name + (" (optional)" if formal.optional else "") for formal in schema.outputs)
    if len(wishes) > len(schema.outputs):
        raise problem(
            "build/outputs",
            f"{op} has {several(len(schema.outputs), 'result')}, not {len(wishes)}",
            where=where,
            why=f"its results are {names}",
            fix=f"write outputs={len(schema.outputs)} or less",
        )
    for index, formal in enumerate(schema.outputs):
        if not formal.optional and (index >= len(wishes) or not wishes[index]):
            raise problem(
                "build/outputs",
                f"the result {formal.name} of {op} is left out, but is required",
                where=where,
                why=f"its results are {names}",
                fix=f"write outputs={sum(1 for one in schema.outputs if not one.optional)} or more",
            )
