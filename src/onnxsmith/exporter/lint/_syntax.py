"""Builds syntax nodes for the patches of the linter."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def function(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """Builds `def name(parameters): body`."""
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [])


def torch_call(torch: str, name: str, *args: ast.expr) -> ast.Call:
    """Builds `torch.name(args)`, with the file's own name for torch."""
    return method_call(ast.Name(torch), name, *args)


def method_call(owner: ast.expr, name: str, *args: ast.expr) -> ast.Call:
    """Builds `owner.name(args)`."""
    return ast.Call(ast.Attribute(owner, name), list(args), [])


def names_of(names: list[str]) -> ast.expr:
    """Builds `name`, or `(name, other)` for several names."""
    return one_or_tuple([ast.Name(name) for name in names])


def one_or_tuple(parts: list[ast.expr]) -> ast.expr:
    """Returns the only part, or a tuple of several parts."""
    return parts[0] if len(parts) == 1 else ast.Tuple(parts)


def written(text: str) -> list[ast.stmt]:
    """Parses statements without line numbers: they take those of the line that they replace."""
    made = ast.parse(text).body
    for statement in made:
        for node in ast.walk(statement):
            for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
                if hasattr(node, name):
                    delattr(node, name)
    return made


def expression(text: str) -> ast.expr:
    """Parses an expression without line numbers."""
    (statement,) = written(text)
    assert isinstance(statement, ast.Expr)
    return statement.value


def keyword_or(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """Returns the argument of a call at this place or with one of these names, or None if it is missing."""
    if place < len(call.args):
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg in names), None)


def fresh(name: str, taken: frozenset[str]) -> str:
    """Appends underscores to the name until the function does not use it."""
    while name in taken:
        name += "_"
    return name


class _Substitution(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return expression(self._names[node.id]) if node.id in self._names else node


def substituted(text: str, names: Mapping[str, str]) -> str:
    """Returns the text of an expression with other expressions in place of these names."""
    return ast.unparse(_Substitution(names).visit(expression(text)))
