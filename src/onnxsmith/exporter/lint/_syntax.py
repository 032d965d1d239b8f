"""Builds syntax nodes for the patches of the linter."""

from __future__ import annotations

import ast


def function(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """`def name(parameters): body`."""
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [])


def torch_call(torch: str, name: str, *args: ast.expr) -> ast.Call:
    """`torch.name(args)`, with the file's own name for torch."""
    return method_call(ast.Name(torch), name, *args)


def method_call(owner: ast.expr, name: str, *args: ast.expr) -> ast.Call:
    """`owner.name(args)`."""
    return ast.Call(ast.Attribute(owner, name), list(args), [])


def names_of(names: list[str]) -> ast.expr:
    """`name`, or `(name, other)` for several."""
    return one_or_tuple([ast.Name(name) for name in names])


def one_or_tuple(parts: list[ast.expr]) -> ast.expr:
    """The only part, or a tuple of several."""
    return parts[0] if len(parts) == 1 else ast.Tuple(parts)
