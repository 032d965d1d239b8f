"""Patches that turn state or random numbers of forward into arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from onnxsmith.exporter.lint.base import Code, New


def argument(code: Code, name: str) -> dict[ast.AST, New]:
    """Adds `name` as the last parameter of forward."""
    old = code.flow.function.args
    free = len(old.defaults) > 0
    # after a parameter with a default only a keyword-only one may lack a default
    new = ast.arguments(
        old.posonlyargs,
        old.args if free else [*old.args, ast.arg(name)],
        old.vararg,
        [*old.kwonlyargs, ast.arg(name)] if free else old.kwonlyargs,
        [*old.kw_defaults, None] if free else old.kw_defaults,
        old.kwarg,
        old.defaults,
    )
    return {old: new}


def taken(code: Code, name: str) -> bool:
    """Whether the function has a variable or parameter of that name."""
    return any(
        isinstance(n, ast.Name | ast.arg) and name in (getattr(n, "id", ""), getattr(n, "arg", ""))
        for n in ast.walk(code.flow.function)
    )


def state(code: Code, attribute: str) -> dict[ast.AST, New]:
    """Turns `self.attribute` into a parameter that forward also returns as its last result. Empty if the code is too
    complex for that."""
    function = code.flow.function
    own = function.args.args[0].arg if function.args.args else ""
    if not code.is_root or taken(code, attribute) or function.args.vararg or function.args.kwarg:
        return {}
    swaps: dict[ast.AST, New] = {}
    name = ast.Name(attribute)
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=of), attr=attr) if of == own and attr == attribute:
                swaps[node] = name
            case ast.Return(value=value) if value is not None:
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                swaps[node] = ast.Return(ast.Tuple([*parts, name]))
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=of), attr=attr), attr=how))
            ):
                if of == own and attr == attribute:
                    found = _written(node.value, how, name)
                    if found is None:
                        return {}
                    swaps[node] = found
            case ast.Subscript(value=ast.Attribute(attr=attr), ctx=ast.Store()) if attr == attribute:
                statement = code.statement(node)
                clone = ast.Assign([name], ast.Call(ast.Attribute(name, "clone"), [], []))
                swaps[statement] = [clone, statement]
    return {**argument(code, attribute), **swaps}


_AS_OPERATOR: Mapping[str, type[ast.operator]] = {"add_": ast.Add, "sub_": ast.Sub, "mul_": ast.Mult, "div_": ast.Div}


def _written(call: ast.expr, how: str, name: ast.Name) -> ast.stmt | None:
    if not isinstance(call, ast.Call):
        return None
    match how, call.args:
        case "copy_", [value]:
            return ast.Assign([name], value)
        case "add_" | "sub_" | "mul_" | "div_", [value] if not call.keywords:
            return ast.Assign([name], ast.BinOp(name, _AS_OPERATOR[how](), value))
        case "zero_", []:
            return ast.Assign([name], ast.BinOp(name, ast.Mult(), ast.Constant(0)))
    if how.endswith("_"):
        return ast.Assign([name], ast.Call(ast.Attribute(name, how.rstrip("_")), call.args, call.keywords))
    return None
