"""Patches for branches on data: both sides are computed, and torch.where chooses one."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from typing import TypeVar

IsData = Callable[[ast.expr], bool]


def condition(test: ast.expr, torch: str) -> ast.expr:
    """Returns the test as an expression that gives a boolean tensor."""
    match test:
        case ast.Compare(ops=[_]):
            return ast.Compare(_tensor(test.left), test.ops, [_tensor(one) for one in test.comparators])
        case ast.UnaryOp(op=ast.Not()):
            return _call(torch, "logical_not", condition(test.operand, torch))
        case ast.BoolOp():
            name = "logical_and" if isinstance(test.op, ast.And) else "logical_or"
            found = condition(test.values[0], torch)
            for one in test.values[1:]:
                found = _call(torch, name, found, condition(one, torch))
            return found
        case ast.Call(func=ast.Name(id="bool"), args=[inner]):
            return condition(inner, torch)
        case ast.Call(func=ast.Attribute(value=inner, attr="item")):
            return condition(inner, torch)
        case (
            ast.Call(func=ast.Attribute(attr="any" | "all" | "isnan" | "is_nonzero"))
            | ast.Call(func=ast.Attribute(attr="equal"))
        ):
            return test
    return ast.Compare(_tensor(test), [ast.NotEq()], [ast.Constant(0)])


def _tensor(node: ast.expr) -> ast.expr:
    """Removes `.item()`, float(), int() and bool() from the expression."""

    def strip(one: ast.AST) -> ast.AST | None:
        match one:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
                return inner
            case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[inner]):
                return inner
        return None

    return changed(node, strip)


_Node = TypeVar("_Node", bound=ast.AST)


def changed(node: _Node, change: Callable[[ast.AST], ast.AST | None]) -> _Node:
    """Copies the node with `change` applied to its parts. Unchanged parts stay the same objects."""
    new = change(node)
    if new is not None:
        return changed(new, change)  # type: ignore[return-value]
    made = copy.copy(node)
    same = True
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(made, name, changed(value, change))
            same = same and getattr(made, name) is value
        elif isinstance(value, list):
            parts = [changed(part, change) if isinstance(part, ast.AST) else part for part in value]
            setattr(made, name, parts)
            same = same and all(one is other for one, other in zip(parts, value, strict=True))
    return node if same else made


def _call(torch: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(torch), name), list(args), [])


def where(torch: str, test: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
    """Returns `torch.where(test, a, b)`; for two tuples, one call for each pair of elements."""
    if isinstance(a, ast.Tuple) and isinstance(b, ast.Tuple) and len(a.elts) == len(b.elts):
        return ast.Tuple([where(torch, test, x, y) for x, y in zip(a.elts, b.elts, strict=True)])
    if ast.dump(a) == ast.dump(b):
        return a
    return _call(torch, "where", test, a, b)


def merged(node: ast.If, rest: list[ast.stmt], torch: str, is_data: IsData) -> list[ast.stmt] | None:
    """Returns the statements that replace the branch, and `rest` after it if one side returns. None if a side does more
    than assign and return."""
    test = condition(node.test, torch)
    other = node.orelse or (rest if _leaves(node.body) else [])
    if _leaves(node.body):
        if not other or not _leaves(other):
            return None
        a = _side(node.body, {}, "_then", torch, is_data)
        b = _side(other, {}, "_else", torch, is_data)
        if a is None or b is None or a[2] is None or b[2] is None:
            return None
        # torch.where cannot choose between a tuple and a tensor
        if isinstance(a[2], ast.Tuple) != isinstance(b[2], ast.Tuple):
            return None
        return [*a[0], *b[0], ast.Return(where(torch, test, a[2], b[2]))]
    if other and _leaves(other):
        return None
    a, b = _side(node.body, {}, "_then", torch, is_data), _side(other, {}, "_else", torch, is_data)
    if a is None or b is None:
        return None
    names = list(dict.fromkeys([*a[1], *b[1]]))
    made: list[ast.stmt] = []
    if len(names) == 1 and len(a[0]) <= 1 and len(b[0]) <= 1:
        values = [_only(side[0]) or ast.Name(names[0]) for side in (a, b)]
        return [ast.Assign([ast.Name(names[0])], where(torch, test, *values))]
    chosen = ast.Name("chosen")
    made = [ast.Assign([chosen], test), *a[0], *b[0]]
    for name in names:
        sides = [ast.Name(side[1].get(name, name)) for side in (a, b)]
        made.append(ast.Assign([ast.Name(name)], where(torch, chosen, *sides)))
    return made


def _only(side: list[ast.stmt]) -> ast.expr | None:
    return side[0].value if side and isinstance(side[0], ast.Assign) else None


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return) and body[-1].value is not None


_Side = tuple[list[ast.stmt], dict[str, str], ast.expr | None]


def _side(body: list[ast.stmt], names: dict[str, str], suffix: str, torch: str, is_data: IsData) -> _Side | None:
    """Returns the statements of one side with renamed variables, the new names, and the returned expression."""
    made: list[ast.stmt] = []
    for index, statement in enumerate(body):
        match statement:
            case ast.Return(value=value) if value is not None:
                return made, names, _renamed(value, names)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                fresh = _renamed(value, names)
                names[name] = f"{name}{suffix}"
                made.append(ast.Assign([ast.Name(names[name])], fresh))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                fresh = ast.BinOp(ast.Name(names.get(name, name)), op, _renamed(value, names))
                names[name] = f"{name}{suffix}"
                made.append(ast.Assign([ast.Name(names[name])], fresh))
            case ast.If() if is_data(statement.test):
                inner = merged(statement, body[index + 1 :], torch, is_data)
                if inner is None:
                    return None
                rest = _side(inner, names, suffix, torch, is_data)
                if rest is None or rest[2] is not None:
                    return None if rest is None else ([*made, *rest[0]], names, rest[2])
                made += rest[0]
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                return None
    return made, names, None


def _renamed(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    return changed(
        node,
        lambda one: (
            ast.Name(names[one.id]) if isinstance(one, ast.Name) and names.get(one.id, one.id) != one.id else None
        ),
    )
