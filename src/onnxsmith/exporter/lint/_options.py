"""Decides the branches of a turn that depend on options: no turn changes an option, and all calls agree on it."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._name_binding import stored
from onnxsmith.exporter.lint._syntax import method_call
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code


def without_options(body: Sequence[ast.stmt], code: Code) -> list[ast.stmt]:
    """Returns the lines of a turn with each `if` on options replaced by the side that runs. Unchanged nodes stay the
    same objects."""
    return transposed(_lines(body, code, frozenset(stored(body))), code)


def transposed(body: Sequence[ast.stmt], code: Code) -> list[ast.stmt]:
    """Returns the lines with `w.t()` in place of `w.T`, which torch takes for another input of the loop (torch
    2.13)."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Attribute(value=inner, attr="T", ctx=ast.Load()) if code.flow.kind(inner) is Kind.TENSOR:
                return method_call(inner, "t")
        return None

    return [changed(statement, change) for statement in body]


def _lines(body: Sequence[ast.stmt], code: Code, bound: Set[str]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for statement in body:
        side = _side(statement, code, bound) if isinstance(statement, ast.If) else None
        if side is not None:
            made += _lines(side, code, bound)
        else:
            made.append(_inside(statement, code, bound))
    return made


def _side(node: ast.If, code: Code, bound: Set[str]) -> list[ast.stmt] | None:
    """Returns the lines that run, or None if the side is not known before the loop."""
    decided = _decided(node.test, code, bound)
    return None if decided is None else (node.body if decided else node.orelse)


def _inside(statement: ast.stmt, code: Code, bound: Set[str]) -> ast.stmt:
    blocks = {
        name: held
        for name in ("body", "orelse", "finalbody")
        if isinstance(held := getattr(statement, name, None), list) and held
    }
    new = {name: _lines(held, code, bound) for name, held in blocks.items()}
    if any(new[name] != held for name, held in blocks.items()):
        fields = dict(ast.iter_fields(statement)) | {name: held or [ast.Pass()] for name, held in new.items()}
        statement = ast.copy_location(type(statement)(**fields), statement)

    def chosen(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.IfExp):
            decided = _decided(node.test, code, bound)
            return None if decided is None else (node.body if decided else node.orelse)
        return None

    return changed(statement, chosen)


def _decided(test: ast.expr, code: Code, bound: Set[str]) -> bool | None:
    read = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return None if read & bound else code.decided(test)
