"""Finds Python values read from tensors: `.item()`, `.tolist()`, `int(tensor)`, `float(tensor)`, `f"{tensor:.2f}"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._syntax import torch_call
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_CAST = {"float": "float", "int": "long"}
"""Maps Python types to tensor methods with the same effect."""


class PythonValue(Check):
    """Finds a Python number read from a tensor, except in tests of branches and loops, which other checks report."""

    nodes = (ast.Call, ast.FormattedValue)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        if code.in_test(node) or any(code.in_test(above) for above in code.up(node)):
            return
        new: New | None = None
        match node:
            case ast.FormattedValue(value=value, format_spec=spec) if spec is not None:
                if code.flow.kind(value) is not Kind.TENSOR:
                    return
                how = "formatting"
            case ast.Call(
                func=ast.Name(id="int"), args=[ast.Call(func=ast.Attribute(value=value, attr="item")) as whole]
            ):
                if code.flow.kind(value) is not Kind.TENSOR or not code.torch:
                    return
                how, new = "int()", torch_call(code.torch, "sym_int", whole)
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist" as name)):
                if _is_made_int(node, code):
                    return
                if code.flow.kind(value) is not Kind.TENSOR:
                    return
                how, new = f".{name}()", value if name == "item" else None
            case ast.Call(func=ast.Name(id="int" | "float" | "bool" as name), args=[value]):
                if code.flow.kind(value) is not Kind.TENSOR:
                    return
                how = f"{name}()"
                new = (
                    ast.Compare(value, [ast.NotEq()], [ast.Constant(0)])
                    if name == "bool"
                    else _number(name, value, code)
                )
            case _:
                return
        yield Remark(
            Problem(
                "forward/python-value",
                f"{how} converts a tensor to a Python value",
                why="the value is known only when the model runs; a TorchScript trace would keep the example's value",
                fix="compute with the tensor itself: a tensor of rank 0 works wherever a number does",
            ),
            node,
            swaps={} if new is None or _hashed(node, code) else {node: new},
        )


def _number(name: str, value: ast.expr, code: Code) -> ast.expr:
    """Returns the number without Python's conversion. An int is often a size, so it stays an integer for torch; a float
    is only computed with, so it may stay a tensor."""
    if name == "int" and code.torch:
        return torch_call(code.torch, "sym_int", ast.Call(ast.Attribute(value, "item"), [], []))
    return ast.Call(ast.Attribute(value, _CAST[name]), [], [])


def _is_made_int(node: ast.AST, code: Code) -> bool:
    """Whether the number is the argument of int(), which has its own remark."""
    above = code.parents.get(node)
    return bool(code.torch) and isinstance(above, ast.Call) and getattr(above.func, "id", "") == "int"


def _hashed(node: ast.AST, code: Code) -> bool:
    """Whether the number is a key of a dictionary or an element of a set. Equal tensors are different keys."""
    above = code.parents.get(node)
    match above:
        case ast.Dict(keys=keys):
            return node in keys
        case ast.DictComp(key=key) | ast.SetComp(elt=key):
            return node is key
    return isinstance(above, ast.Set)
