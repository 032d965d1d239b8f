"""Loops on data or over an axis, written with torch.while_loop, scan and vmap, which a graph can hold."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from onnxsmith.exporter.lint._merge import changed, condition
from onnxsmith.exporter.lint._values import Kind, Value

Env = Mapping[str, Value]
Swaps = dict[ast.AST, ast.AST | list[ast.stmt]]


def while_loop(loop: ast.While, torch: str, env: Env) -> list[ast.stmt] | None:
    """`while` on data; None when its body is more than assignments to names."""
    carried = _assigned(loop.body, env)
    if not carried or loop.orelse:
        return None
    body = [*loop.body, ast.Return(_tuple([ast.Name(name) for name in carried]))]
    test = condition(loop.test, torch)
    starts = [_as_tensor(name, env, torch) for name in carried]
    return _while(carried, test, body, starts, torch)


def counted_loop(loop: ast.For, torch: str, env: Env) -> list[ast.stmt] | None:
    """`for i in range(n)` with n on data."""
    match loop:
        case ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]):
            first, last = (ast.Constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
        case _:
            return None
    carried = _assigned(loop.body, env)
    if not carried or len(args) > 2:
        return None
    test = condition(ast.Compare(ast.Name(turn), [ast.Lt()], [last]), torch)
    body = [changed(statement, lambda node: _row(node, turn)) for statement in loop.body]
    after = [ast.BinOp(ast.Name(turn), ast.Add(), ast.Constant(1)), *map(ast.Name, carried)]
    starts = [_torch(torch, "tensor", first), *(_as_tensor(name, env, torch) for name in carried)]
    return _while([turn, *carried], test, [*body, ast.Return(_tuple(after))], starts, torch)


def over_axis(loop: ast.For, torch: str, env: Env, function: ast.FunctionDef) -> Swaps | None:
    """A loop over the rows of tensors. Lists that it appends to become tensors, and torch.stack and torch.cat of them
    go; None when it is more than that and assignments."""
    rows = _rows(loop)
    if rows is None or loop.orelse:
        return None
    body, sources, names = rows
    appended = {}
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                if name in appended:
                    return None
                appended[name] = value
            case _:
                kept.append(statement)
    carried = _assigned(kept, env) if kept else []
    if carried is None or not (carried or appended):
        return None
    swaps = _without_stacks(appended, function, loop, torch)
    if swaps is None:
        return None
    given: ast.expr = _tuple([ast.Name(name) for name in names]) if len(names) > 1 else ast.Name(names[0])
    xs = _tuple(sources) if len(sources) > 1 else sources[0]
    results = [*appended.values()]
    if not carried:
        turn = _function("turn", names, [*kept, ast.Return(_tuple(results) if len(results) > 1 else results[0])])
        call = ast.Call(_torch(torch, "vmap", ast.Name("turn")), sources, [])
        swaps[loop] = [turn, ast.Assign([_names(list(appended))], call)]
        return swaps
    unpack = [ast.Assign([given], ast.Name("rows"))] if len(names) > 1 else []
    states = _tuple([ast.Name(name) for name in carried])
    shown = results or [ast.Call(ast.Attribute(ast.Name(carried[0]), "clone"), [], [])]
    inner: list[ast.stmt] = [ast.Assign([states], ast.Name("state")), *unpack, *kept]
    copied = [ast.Call(ast.Attribute(one, "clone"), [], []) if isinstance(one, ast.Name) else one for one in shown]
    inner.append(ast.Return(_tuple([states, _tuple(copied)])))
    turn = _function("turn", ["state", "rows" if len(names) > 1 else names[0]], inner)
    starts = _tuple([_start(name, env, torch, kept, dict(zip(names, sources, strict=True))) for name in carried])
    scan = ast.Attribute(ast.Attribute(ast.Name(torch), "_higher_order_ops"), "scan")
    left = _tuple([ast.Name(name) for name in appended] or [ast.Name("_")])
    swaps[loop] = [turn, ast.Assign([_tuple([states, left])], ast.Call(scan, [ast.Name("turn"), starts, xs], []))]
    return swaps


def _rows(loop: ast.For) -> tuple[list[ast.stmt], list[ast.expr], list[str]] | None:
    """The body with its rows as names, the tensors that they are rows of, and those names."""
    match loop:
        case ast.For(target=ast.Name(id=name), iter=ast.Name() | ast.Attribute() as source):
            return loop.body, [source], [name]
        case ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=[_])):
            sources: dict[str, ast.expr] = {}

            def row(node: ast.AST) -> ast.AST | None:
                match node:
                    case ast.Subscript(value=ast.Name(id=tensor) as of, slice=ast.Name(id=index)) if index == turn:
                        sources[tensor] = of
                        return ast.Name(f"{tensor}_row")
                return None

            body = [changed(statement, row) for statement in loop.body]
            uses = any(isinstance(n, ast.Name) and n.id == turn for one in body for n in ast.walk(one))
            return None if uses or not sources else (body, list(sources.values()), [f"{name}_row" for name in sources])
    return None


def _without_stacks(
    appended: Mapping[str, ast.expr], function: ast.FunctionDef, loop: ast.For, torch: str
) -> Swaps | None:
    inside = {id(node) for node in ast.walk(loop)}
    swaps: Swaps = {}
    done: set[int] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr="stack" | "cat" as how), args=[ast.Name(id=name) as read, *rest]):
                if name not in appended:
                    continue
                given = rest[0] if rest else next((k.value for k in node.keywords if k.arg in ("dim", "axis")), None)
                axis = given.value if isinstance(given, ast.Constant) else 0 if given is None else None
                if not isinstance(axis, int):
                    return None
                swaps[node] = _stacked(name, how, axis)
                done.add(id(read))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in appended and id(node) not in done | inside:
            above = isinstance(node.ctx, ast.Store)
            if not above:
                return None
    return swaps


def _stacked(name: str, how: str, axis: int) -> ast.expr:
    whole: ast.expr = ast.Name(name)
    if axis:
        whole = ast.Call(ast.Attribute(whole, "movedim"), [ast.Constant(0), ast.Constant(axis)], [])
    if how == "cat":
        whole = ast.Call(ast.Attribute(whole, "flatten"), [ast.Constant(axis), ast.Constant(axis + 1)], [])
    return whole


def _assigned(body: list[ast.stmt], env: Env) -> list[str] | None:
    """Names that the body binds anew and that are there before it; None when it does more than bind names."""
    found: dict[str, None] = {}
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
                found[name] = None
            case ast.Assign(targets=[ast.Tuple(elts=parts)]) if all(isinstance(part, ast.Name) for part in parts):
                found |= {part.id: None for part in parts if isinstance(part, ast.Name)}
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case _:
                return None
    return [name for name in found if name in env]


def _row(node: ast.AST, turn: str) -> ast.AST | None:
    """`x[i]` with i a tensor is a selection, not an index."""
    match node:
        case ast.Subscript(value=value, slice=ast.Name(id=name)) if name == turn:
            at = ast.Call(ast.Attribute(ast.Name(turn), "reshape"), [ast.Constant(1)], [])
            chosen = ast.Call(ast.Attribute(value, "index_select"), [ast.Constant(0), at], [])
            return ast.Call(ast.Attribute(chosen, "squeeze"), [ast.Constant(0)], [])
    return None


def _while(
    names: list[str], test: ast.expr, body: list[ast.stmt], starts: list[ast.expr], torch: str
) -> list[ast.stmt]:
    goes_on = _function("goes_on", names, [ast.Return(test)])
    call = _torch(torch, "while_loop", ast.Name("goes_on"), ast.Name("turn"), _tuple(starts))
    return [goes_on, _function("turn", names, body), ast.Assign([_tuple([ast.Name(n) for n in names])], call)]


def _as_tensor(name: str, env: Env, torch: str) -> ast.expr:
    if env[name].kind in (Kind.TENSOR, Kind.MANY):
        return ast.Call(ast.Attribute(ast.Name(name), "clone"), [], [])
    return _torch(torch, "as_tensor", ast.Name(name))


def _start(name: str, env: Env, torch: str, body: list[ast.stmt], rows: Mapping[str, ast.expr]) -> ast.expr:
    """What a state begins with: a Python number becomes a tensor of the shape of what is added to it."""
    if env[name].kind in (Kind.TENSOR, Kind.MANY):
        return ast.Name(name)
    for statement in body:
        match statement:
            case ast.AugAssign(target=ast.Name(id=own), value=added) if own == name:
                pass
            case ast.Assign(targets=[ast.Name(id=own)], value=ast.BinOp(left=ast.Name(id=left), right=added)) if (
                own == name == left
            ):
                pass
            case _:
                continue
        first = changed(
            added,
            lambda node: (
                ast.Subscript(rows[node.id], ast.Constant(0))
                if isinstance(node, ast.Name) and node.id in rows
                else None
            ),
        )
        return ast.BinOp(ast.Name(name), ast.Add(), _torch(torch, "zeros_like", first))
    return _as_tensor(name, env, torch)


def _function(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [])


def _torch(torch: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(torch), name), list(args), [])


def _tuple(parts: list[ast.expr]) -> ast.Tuple:
    return ast.Tuple(parts)


def _names(names: list[str]) -> ast.expr:
    return ast.Name(names[0]) if len(names) == 1 else _tuple([ast.Name(name) for name in names])
