"""Finds the lists that a loop appends to and that are joined after it: each turn gives its part of the whole."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.exporter.lint._syntax import keyword_or
from onnxsmith.exporter.lint.base import Code


@dataclass(frozen=True)
class Joined:
    """A list that torch.cat or torch.stack (`how`) joins along `axis` after the loop. `reads` are the expressions that
    read a stacked list, with the text that replaces each, in which `{}` is the whole. `grown`: the name is a tensor,
    which each turn extends."""

    how: str
    axis: int
    reads: tuple[tuple[ast.expr, str], ...] = ()
    grown: bool = False


def lists_of(loop: ast.For | ast.While, code: Code) -> dict[str, Joined] | None:
    """The lists that the loop appends to, by name; None if one is used in another way."""
    found: dict[str, Joined] = {}
    appended = _appended(loop.body, code)
    for name, nodes in appended.items():
        inside = [one for part in loop.body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id == name]
        if any(id(one) not in nodes for one in inside):
            return None
        how = joined(name, loop, code)
        if how is None:
            return None
        found[name] = how
    return found


def grown(body: Sequence[ast.stmt], torch: str) -> tuple[list[ast.stmt], dict[str, Joined]]:
    """The body with `parts.append(y)` in place of `out = torch.cat([out, y], dim)`, and these tensors."""
    made: list[ast.stmt] = []
    found: dict[str, Joined] = {}
    for statement in body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=home), attr="cat" | "concat"),
                    args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *_],
                ) as call,
            ) if home == torch and parts and isinstance(parts[0], ast.Name) and parts[0].id == name:
                axis = axis_of(call)
                others = [
                    one for part in body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id == name
                ]
                if axis is not None and len(others) == 2:
                    found[name] = Joined("cat", axis, grown=True)
                    add = ast.Attribute(ast.Name(name), "extend")
                    made.append(ast.Expr(ast.Call(add, [ast.List(parts[1:])], [])))
                    continue
        made.append(statement)
    return made, found


def _appended(body: Sequence[ast.stmt], code: Code) -> dict[str, set[int]]:
    """The names of lists that the reached statements append to, with the ids of the nodes that do so."""
    found: dict[str, set[int]] = {}
    for statement in body:
        for node in (one for one in ast.walk(statement) if one in code.flow.reached):
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) as one, attr="append" | "extend"))
                ):
                    found.setdefault(name, set()).add(id(one))
                case ast.AugAssign(target=ast.Name(id=name) as one, op=ast.Add(), value=ast.List()):
                    found.setdefault(name, set()).add(id(one))
    stored = {
        name: {id(one) for part in body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id == name}
        for name in found
    }
    # A list that the turn itself makes is no list of the loop.
    return {name: nodes for name, nodes in found.items() if not _is_made(body, name, stored[name] - nodes)}


def _is_made(body: Sequence[ast.stmt], name: str, others: set[int]) -> bool:
    return any(
        isinstance(statement, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == name and id(one) in others for one in statement.targets)
        for statement in body
    )


def joined(name: str, loop: ast.AST, code: Code) -> Joined | None:
    """How the list is joined after the loop. A list that is only handed on counts as joined as all lists of the
    function are, if there is one way: the comparison with the module shows whether it is."""
    inside = {id(node) for node in ast.walk(loop)}
    others = [node for node in ast.walk(code.flow.function) if isinstance(node, ast.Call) and id(node) not in inside]
    calls = [node for node in others if _way(node) is not None]
    own = [call for call in calls if _list(call) == name]
    counted = [node for node in others if _called(node) in ("sum", "len") and _list(node) == name]
    known = [found for call in own or ([] if counted else calls) if (found := _way(call)) is not None]
    ways = set(known) or {("stack", 0)}
    way, axis = next(iter(ways))
    if len(ways) != 1 or axis is None or (way == "cat" and counted) or not (known or counted):
        return None
    read = inside | {id(call.args[0]) for call in (*own, *counted)}
    is_stack = way == "stack"
    if not _only_joined(name, read, code, appends=not is_stack) or (is_stack and not (own or counted)):
        return None
    texts = {"sum": f"{{}}.sum({axis})", "len": f"{{}}.shape[{axis}]"}
    reads = [(call, texts.get(_called(call), "{}")) for call in (*own, *counted)]
    return Joined(way, axis, tuple(reads) if is_stack else ())


def _way(call: ast.Call) -> tuple[str, int | None] | None:
    """The function and the axis of a call that joins a list with a name; None for other calls."""
    match call.func:
        case ast.Attribute(attr="cat" | "concat" | "stack" as how) if _list(call):
            return "stack" if how == "stack" else "cat", axis_of(call)
    return None


def _list(call: ast.Call) -> str:
    """The name that is the first argument; empty if there is none."""
    return call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _only_joined(name: str, allowed: set[int], code: Code, *, appends: bool) -> bool:
    """Whether the list is otherwise only bound; with `appends`, appended to, or an element of a list."""
    for node in ast.walk(code.flow.function):
        if not isinstance(node, ast.Name) or node.id != name or id(node) in allowed or isinstance(node.ctx, ast.Store):
            continue
        above = code.parents.get(node)
        is_appended = isinstance(above, ast.Attribute) and above.attr in ("append", "extend")
        if not appends or not (is_appended or isinstance(above, ast.List | ast.Tuple)):
            return False
    return True


def axis_of(call: ast.Call) -> int | None:
    """The axis of torch.cat or torch.stack; None if it is no number in the code."""
    given = keyword_or(call, 1, "dim", "axis")
    try:
        axis = 0 if given is None else ast.literal_eval(given)
    except ValueError:
        return None
    return axis if isinstance(axis, int) else None
