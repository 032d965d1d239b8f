"""Rewrites the lines of a turn that ask whether it is the first turn, or whether to pad. A graph cannot decide
either."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._syntax import method_call, one_or_tuple, torch_call
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a turn may leave the loop or the function, or ends early."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue | ast.Raise | ast.Delete):
            return True
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        is_loop = isinstance(statement, ast.For | ast.While)
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            if is_loop and any(isinstance(one, ast.Return) for part in inner for one in ast.walk(part)):
                return True
            if not is_loop and inner and leaves(inner):
                return True
    nodes = [node for statement in body for node in ast.walk(statement)]
    if any(isinstance(node, ast.Yield | ast.Await | ast.Global | ast.Nonlocal | ast.NamedExpr) for node in nodes):
        return True
    targets = [one for node in nodes if isinstance(node, ast.Assign) for one in node.targets]
    targets += [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    # a turn that sets an attribute changes the module, which is no state of the loop
    return any(isinstance(one, ast.Attribute) for one in targets)


def without_first(
    body: Sequence[ast.stmt], index: Iterable[tuple[str, str]], lists: Iterable[str], is_first: str
) -> tuple[list[ast.stmt], bool]:
    """Returns the body with `is_first` in place of tests of `i == 0`, `i > 0`, `i` and `not parts`, and whether there
    was such a test."""
    starts = dict(index)
    known = set(lists)
    found = False

    def asks(test: ast.expr) -> ast.expr | None:
        match test:
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq() | ast.Gt() as op], comparators=[value]
            ) if starts.get(name) == ast.unparse(value):
                return _is(is_first, isinstance(op, ast.Eq))
            case ast.Name(id=name) if starts.get(name) == "0" or name in known:
                return _is(is_first, False)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                asked = asks(inner)
                return None if asked is None else ast.UnaryOp(ast.Not(), asked)
            case ast.BoolOp(op=op, values=values):
                parts = [asks(one) for one in values]
                if any(parts):
                    return ast.BoolOp(op, [new or old for new, old in zip(parts, values, strict=True)])
        return None

    def change(node: ast.AST) -> ast.AST | None:
        nonlocal found
        if isinstance(node, ast.If | ast.IfExp):
            new = asks(node.test)
            if new is not None:
                found = True
                made = type(node)(**{**dict(ast.iter_fields(node)), "test": new})
                return ast.copy_location(made, node)
        return None

    return [changed(statement, change) for statement in body], found


def _is(name: str, yes: bool) -> ast.expr:
    return ast.Name(name) if yes else ast.UnaryOp(ast.Not(), ast.Name(name))


def always_padded(body: Sequence[ast.stmt], code: Code) -> list[ast.stmt]:
    """Returns the body with `if short > 0: c = pad(c, (0, short))` as `c = pad(c, (0, short))`, because a pad by 0
    changes nothing."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.If(
                body=[ast.Assign(value=ast.Call(func=ast.Attribute(attr="pad") | ast.Name(id="pad"))) as inner],
                orelse=[],
            ) if code.flow.kind(node.test) in (Kind.SIZE, Kind.OTHER):
                return inner
        return None

    return [changed(statement, change) for statement in body]


def selected(body: Sequence[ast.stmt], numbers: frozenset[str], code: Code) -> list[ast.stmt]:
    """Returns the body with `x.select(1, t)[:, 2:]` in place of `x[:, t, 2:]` if t follows from `numbers`. A number of
    the graph may not stand beside slices."""

    def is_number(part: ast.expr) -> bool:
        read = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
        plain = isinstance(part, ast.Name | ast.BinOp) and code.flow.kind(part) in (Kind.OTHER, Kind.SIZE)
        return plain and bool(read & numbers)

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Assign(targets=[ast.Subscript(value=owner) as target], value=ast.Constant() as value):
                if not _is_tensor(owner, code):
                    return None
                read = ast.Subscript(target.value, target.slice, ast.Load())
                return ast.copy_location(ast.Expr(method_call(read, "fill_", value)), node)
        if not isinstance(node, ast.Subscript) or not _is_tensor(node.value, code):
            return None
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        place = next((place for place, part in enumerate(parts) if is_number(part)), None)
        if place is None or any(isinstance(part, ast.Constant) and part.value is None for part in parts):
            return None
        before, after = parts[:place], parts[place + 1 :]
        has_rest = any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in before)
        if not all(isinstance(part, ast.Slice | ast.Constant) for part in before):
            return None
        if any(isinstance(part, ast.Constant) and part.value is not Ellipsis for part in before):
            return None
        axis = ast.Constant(-1 - len(after) if has_rest else place)
        row = method_call(node.value, "select", axis, parts[place])
        left = [*before, *after]
        if any(not _is_whole(part) for part in left) or isinstance(node.ctx, ast.Store):
            whole = ast.Slice() if not left else one_or_tuple(left)
            return ast.Subscript(row, ast.Constant(Ellipsis) if not left else whole, node.ctx)
        return row

    return [changed(statement, change) for statement in body]


def _is_tensor(node: ast.expr, code: Code) -> bool:
    """Whether the expression is a tensor. A `select` that this module inserted counts as the tensor it selects from."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="select")):
            return _is_tensor(inner, code)
    return code.flow.kind(node) is Kind.TENSOR


def _is_whole(part: ast.expr) -> bool:
    is_slice = isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None
    return is_slice or (isinstance(part, ast.Constant) and part.value is Ellipsis)


def extremes(body: Sequence[ast.stmt], torch: str, code: Code) -> list[ast.stmt]:
    """Returns the body with torch.sym_max and torch.sym_min in place of `max` and `min` of numbers. TorchDynamo, which
    traces the body, confuses the two (torch 2.13)."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[first, *more], keywords=[]) if more:
                if any(code.flow.kind(one) not in (Kind.OTHER, Kind.SIZE) for one in (first, *more)):
                    return None
                made = first
                for one in more:
                    made = torch_call(torch, f"sym_{name}", made, one)
                return made
        return None

    return [changed(statement, change) for statement in body]
