"""Patches for branches on sizes that choose a number or the width of a pad: arithmetic computes the number without a
branch.

`torch.sym_min` and `torch.sym_max` compute with numbers and, in a trace, with symbolic sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code


def computed(node: ast.If | ast.IfExp, code: Code) -> ast.expr | list[ast.stmt] | None:
    """Returns the replacement of the branch. None if a side does more than choose numbers or pad, or if the test is not
    arithmetic."""
    truth = _truth(node.test, code)
    if truth is None or not code.torch:
        return None
    if isinstance(node, ast.IfExp):
        sides = node.body, node.orelse
        return _chosen(truth, *sides) if all(_is_number(side, code) for side in sides) else None
    pad = _padded(node, truth, code)
    if pad is not None:
        return [pad]
    then, other = _assigned(node.body, code), _assigned(node.orelse, code)
    if then is None or other is None or not (then or other):
        return None
    made: list[ast.stmt] = []
    for place in {**then, **other}:
        target = (then.get(place) or other[place])[0]
        before = ast.parse(place, mode="eval").body
        values = [side[place][1] if place in side else before for side in (then, other)]
        made.append(ast.Assign([target], _chosen(truth, *values)))
    return made


def _padded(node: ast.If, truth: ast.expr, code: Code) -> ast.stmt | None:
    """Returns `if short: x = pad(x, (0, n))` as a pad by n or by 0, or None if the branch does anything else."""
    match node:
        case ast.If(
            body=[
                ast.Assign(
                    targets=[ast.Name(id=target) as name],
                    value=ast.Call(
                        func=ast.Attribute(attr="pad") | ast.Name(id="pad"),
                        args=[ast.Name(id=padded) as tensor, ast.Tuple(elts=widths) | ast.List(elts=widths), *rest],
                    ) as call,
                )
            ],
            orelse=[],
        ) if target == padded and all(_is_number(one, code) for one in widths):
            zero = [isinstance(one, ast.Constant) and one.value == 0 for one in widths]
            chosen = [
                one if is_zero else ast.BinOp(one, ast.Mult(), truth) for one, is_zero in zip(widths, zero, strict=True)
            ]
            return ast.Assign([name], ast.Call(call.func, [tensor, ast.Tuple(chosen), *rest], call.keywords))
    return None


_Assigned = dict[str, tuple[ast.expr, ast.expr]]
"""Maps the text of a target to the target and the number assigned to it."""


def _assigned(body: Sequence[ast.stmt], code: Code) -> _Assigned | None:
    """Returns the numbers that the statements assign. None if the statements do anything else, or read a target."""
    found: _Assigned = {}
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name() | ast.Subscript() as target], value=value):
                pass
            case ast.AugAssign(target=ast.Name() as target, op=op, value=added):
                value = ast.BinOp(ast.Name(target.id), op, added)
                if not _is_number(added, code):
                    return None
            case ast.Pass():
                continue
            case _:
                return None
        is_new = isinstance(statement, ast.Assign)
        read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
        if ast.unparse(target) in found or read & found.keys() or (is_new and not _is_number(value, code)):
            return None
        found[ast.unparse(target)] = target, value
    return found


def _is_number(node: ast.expr, code: Code) -> bool:
    """Whether the expression is an integer: a constant, a size, or computed from these."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand, code)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return _is_number(node.left, code) and _is_number(node.right, code)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return code.flow.kind(node) is Kind.SIZE or type(code.flow.live(node)) is int
    return code.flow.kind(node) is Kind.SIZE and isinstance(node, ast.Call)


def _truth(test: ast.expr, code: Code) -> ast.expr | None:
    """Returns the test as a number: 1 if it is true, else 0."""
    one, zero, torch = ast.Constant(1), ast.Constant(0), code.torch
    match test:
        case ast.UnaryOp(op=ast.Not()):
            inner = _truth(test.operand, code)
            return None if inner is None else ast.BinOp(one, ast.Sub(), inner)
        case ast.BoolOp():
            parts = [_truth(part, code) for part in test.values]
            found = parts[0]
            name = "sym_min" if isinstance(test.op, ast.And) else "sym_max"
            for part in parts[1:]:
                found = None if found is None or part is None else _call(torch, name, found, part)
            return found
        case ast.Compare(left=a, ops=[op], comparators=[b]) if _is_number(a, code) and _is_number(b, code):
            return _compared(a, op, b, torch)
        case ast.BinOp() | ast.Name() if _is_number(test, code):
            return _compared(test, ast.NotEq(), zero, torch)
    return None


def _compared(a: ast.expr, op: ast.cmpop, b: ast.expr, torch: str) -> ast.expr | None:
    """Returns a comparison of integers as 0 or 1: `a > b` is a - b, clamped to [0, 1]."""
    one, zero = ast.Constant(1), ast.Constant(0)
    over, under = ast.BinOp(a, ast.Sub(), b), ast.BinOp(b, ast.Sub(), a)

    def cut(difference: ast.expr) -> ast.expr:
        return _call(torch, "sym_min", _call(torch, "sym_max", difference, zero), one)

    match op:
        case ast.NotEq():
            return _call(torch, "sym_min", _call(torch, "sym_max", over, under), one)
        case ast.Eq():
            unequal = _call(torch, "sym_min", _call(torch, "sym_max", over, under), one)
            return ast.BinOp(one, ast.Sub(), unequal)
        case ast.Gt():
            return cut(over)
        case ast.Lt():
            return cut(under)
        case ast.GtE():
            return cut(ast.BinOp(over, ast.Add(), one))
        case ast.LtE():
            return cut(ast.BinOp(under, ast.Add(), one))
    return None


def _chosen(truth: ast.expr, then: ast.expr, other: ast.expr) -> ast.expr:
    """Returns `other + (then - other) * truth`."""
    match then, other:
        case ast.Constant(value=a), ast.Constant(value=b) if isinstance(a, int) and isinstance(b, int):
            step: ast.expr = ast.Constant(a - b)
        case _:
            step = ast.BinOp(then, ast.Sub(), other)
    return ast.BinOp(other, ast.Add(), ast.BinOp(step, ast.Mult(), truth))


def _call(torch: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(torch), name), list(args), [])
