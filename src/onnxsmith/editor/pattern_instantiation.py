"""Makes the nodes that a pattern describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.patterns.pattern import (
    Absent,
    AttributeVariable,
    Exact,
    Number,
    Numbers,
    Operand,
    Pattern,
    Result,
    Variable,
    Wanted,
)


def instantiated(
    pattern: Pattern, make: Operators, bound: Mapping[str, ir.Value], attributes: Mapping[str, ir.Attr | None]
) -> list[ir.Value]:
    """Makes the nodes of a pattern with values in place of its variables, and returns its results.

    Raises:
        OnnxsmithError: `edit/replacement` for a variable without a value, or for a part that stands for several things;
            `build/…` for operands that do not fit.
    """
    made: list[tuple[Any, ...]] = []

    def operand(one: Operand) -> Any:
        match one:
            case None:
                return None
            case Variable(name=name):
                if name not in bound:
                    raise _unknown(name, bound)
                return make.tensor(bound[name])
            case Number(value=value):
                return value
            case Numbers(values=values):
                return list(values)
            case Exact():
                return one.array
            case Result(node=index, output=output):
                return made[index][output]
            case _:
                raise _open(type(one).__name__)

    def attribute(name: str, wanted: Wanted) -> Any:
        match wanted:
            case AttributeVariable(name=variable):
                if variable not in attributes:
                    raise _unknown(f"?{variable}", attributes)
                held = attributes[variable]
                if held is not None and held.is_ref():  # of the function that the match is in
                    return ir.RefAttr(name, held.ref_attr_name or "", held.type)
                return held.value if held is not None else None
            case Absent():
                return None
            case Number(value=value):
                return value
            case Exact():
                return wanted.array
            case tuple():
                return list(wanted)
            case _:
                return wanted

    for node in pattern.nodes:
        if not node.op_type:
            raise _open("any")
        given = {name: attribute(name, wanted) for name, wanted in node.attributes}
        title = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        results = make.node(title, *[operand(one) for one in node.inputs], outputs=len(node.outputs), **given)
        made.append(results if isinstance(results, tuple) else (results,))
    return [_value(operand(one)) for one in pattern.outputs]


def _value(given: Any) -> ir.Value:
    if isinstance(given, Tensor):
        return given.value
    raise _open("a constant as a result")


def _unknown(name: str, known: Mapping[str, Any]) -> OnnxsmithError:
    return problem(
        "edit/replacement",
        f"by reads {name}, which find does not have",
        why=f"find has {', '.join(known) or 'no variables'}",
        fix="use the names of find's variables",
    )


def _open(what: str) -> OnnxsmithError:
    return problem(
        "edit/replacement",
        f"by cannot have {what}: it stands for several things",
        why="the replacement says which nodes to make",
        fix="write operators, variables of find and constants",
    )
