"""Reads `while start < stop: …; start += step` as `for start in range(start, stop, step)`. Other tests stay tests."""

from __future__ import annotations

import ast
from dataclasses import replace

from onnxsmith.exporter.lint._block_turns import Turns, range_turns
from onnxsmith.exporter.lint._branch_merging import condition
from onnxsmith.exporter.lint.base import Code


def counted(loop: ast.While, code: Code) -> Turns | None:
    """Returns the turns of the loop, or None if it does not count up by the same step in every turn."""
    match loop.test:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() as op], comparators=[stop]):
            pass
        case ast.Compare(left=stop, ops=[ast.Gt() | ast.GtE() as op], comparators=[left]):
            pass
        case _:
            return None
    match left:
        case ast.Name(id=name):
            limit = ast.unparse(stop)
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=more):
            limit = f"{ast.unparse(stop)} - ({ast.unparse(more)})"
        case _:
            return None
    if isinstance(op, ast.LtE | ast.GtE):
        limit += " + 1"
    step = _step(loop, name)
    if step is None or _rebinds(loop, [stop, step]):
        return None
    start = f"{name}_start"
    found = range_turns(name, start, limit.replace("\n", " "), ast.unparse(step))
    return replace(found, before=[(start, name)])


def _step(loop: ast.While, name: str) -> ast.expr | None:
    """Returns the number that each turn adds to the name, if exactly one statement of the turn binds the name."""
    found: list[ast.expr] = []
    for statement in loop.body:
        match statement:
            case ast.AugAssign(target=ast.Name(id=one), op=ast.Add(), value=value) if one == name:
                found.append(value)
            case ast.Assign(
                targets=[ast.Name(id=one)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
            ) if one == left == name:
                found.append(value)
    stores = [
        node
        for part in loop.body
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return found[0] if len(found) == len(stores) == 1 else None


def _rebinds(loop: ast.While, parts: list[ast.expr]) -> bool:
    """Whether a turn binds a name in these expressions."""
    read = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in read
        for part in loop.body
        for node in ast.walk(part)
    )


def tested(loop: ast.While, code: Code) -> Turns:
    """Returns the number of turns of a loop that runs as long as its test is true. A turn may change the numbers in the
    test in any way."""
    return Turns("", (), test=ast.unparse(condition(loop.test, code.torch)))
