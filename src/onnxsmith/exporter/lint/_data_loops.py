"""Patches for loops on data: `while` and `for` become torch.while_loop, which can be exported."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from onnxsmith.exporter.lint._branch_merging import changed, condition
from onnxsmith.exporter.lint._syntax import function, method_call, torch_call
from onnxsmith.exporter.lint._values import Kind, Value

Env = Mapping[str, Value]
"""Maps names to their values before a loop."""


def while_loop(loop: ast.While, torch: str, env: Env) -> list[ast.stmt] | None:
    """Returns the patch of a `while` on data, or None if its body does more than assign to names."""
    carried = assigned(loop.body, env)
    if not carried or loop.orelse:
        return None
    body = [*loop.body, ast.Return(ast.Tuple([ast.Name(name) for name in carried]))]
    test = condition(loop.test, torch)
    starts = [as_tensor(name, env, torch) for name in carried]
    return _while(carried, test, body, starts, torch)


def counted_loop(loop: ast.For, torch: str, env: Env) -> list[ast.stmt] | None:
    """Returns the patch of `for i in range(n)` if n depends on data, or None if the body does more than assign to
    names."""
    match loop:
        case ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]):
            first, last = (ast.Constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
        case _:
            return None
    carried = assigned(loop.body, env)
    if not carried or len(args) > 2:
        return None
    test = condition(ast.Compare(ast.Name(turn), [ast.Lt()], [last]), torch)
    body = [changed(statement, lambda node: _row(node, turn)) for statement in loop.body]
    after = [ast.BinOp(ast.Name(turn), ast.Add(), ast.Constant(1)), *map(ast.Name, carried)]
    starts = [torch_call(torch, "tensor", first), *(as_tensor(name, env, torch) for name in carried)]
    return _while([turn, *carried], test, [*body, ast.Return(ast.Tuple(after))], starts, torch)


def assigned(body: list[ast.stmt], env: Env) -> list[str] | None:
    """Returns the names that the body rebinds and that exist before it, or None if the body does more than assign to
    names."""
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
    """Replaces `x[i]` by a selection, because `i` is a tensor in torch.while_loop."""
    match node:
        case ast.Subscript(value=value, slice=ast.Name(id=name)) if name == turn:
            at = method_call(ast.Name(turn), "reshape", ast.Constant(1))
            return method_call(method_call(value, "index_select", ast.Constant(0), at), "squeeze", ast.Constant(0))
    return None


def _while(
    names: list[str], test: ast.expr, body: list[ast.stmt], starts: list[ast.expr], torch: str
) -> list[ast.stmt]:
    goes_on = function("goes_on", names, [ast.Return(test)])
    call = torch_call(torch, "while_loop", ast.Name("goes_on"), ast.Name("turn"), ast.Tuple(starts))
    return [goes_on, function("turn", names, body), ast.Assign([ast.Tuple([ast.Name(n) for n in names])], call)]


def as_tensor(name: str, env: Env, torch: str) -> ast.expr:
    if env[name].kind in (Kind.TENSOR, Kind.MANY):
        return method_call(ast.Name(name), "clone")
    return torch_call(torch, "as_tensor", ast.Name(name))
