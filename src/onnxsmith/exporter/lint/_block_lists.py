"""Finds the lists that a loop appends to and that are joined after it: each turn computes a part of the joined
tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._list_pieces import forwards, in_pieces, is_filled, uses
from onnxsmith.exporter.lint._syntax import keyword_or
from onnxsmith.exporter.lint.base import Code, New


@dataclass(frozen=True)
class Joined:
    """A list that torch.cat or torch.stack (`how`) joins along `axis` after the loop.

    `reads` are the expressions that read a stacked list, each with its replacement, in which `{}` is the joined tensor.
    `grown`: the name is a tensor that each turn extends. `flipped`: each turn adds its part in front. `pieces`: the
    list has other elements too and becomes a list of pieces; `swaps` are then the new nodes after the loop.
    """

    how: str
    axis: int
    reads: tuple[tuple[ast.expr, str], ...] = ()
    grown: bool = False
    flipped: bool = False
    pieces: bool = False
    swaps: Mapping[ast.AST, New] = field(default_factory=dict)


def lists_of(loop: ast.For | ast.While, body: Sequence[ast.stmt], code: Code) -> dict[str, Joined] | None:
    """Returns the lists that the lines of a turn add to, by name. None if a list is used in another way."""
    found: dict[str, Joined] = {}
    front = {name for name, _ in _inserted(body)}
    for name, nodes in _appended(body, code).items():
        inside = [one for part in body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id == name]
        if any(id(one) not in nodes for one in inside):
            return None
        how = joined(name, loop, code)
        if how is None:
            return None
        if name in front:
            values = [value for other, value in _inserted(body) if other == name]
            if len(values) != 1 or len(nodes) != 1 or (how.how == "cat" and not _is_one(values[0], how.axis)):
                return None
            how = replace(how, flipped=True)
        found[name] = how
    return found


def _inserted(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yields the lists to whose front a turn adds, each with the added expression."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="insert"), args=[ast.Constant(value=0), value]
                ):
                    yield name, value


def _is_one(value: ast.expr, axis: int) -> bool:
    """Whether the value has one row along the axis."""
    match value:
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[at]):
            return ast.unparse(at) == str(axis)
    return False


def appending(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the lines with `parts.append(y)` in place of `parts.insert(0, y)`."""

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Call(func=ast.Attribute(attr="insert") as method, args=[ast.Constant(value=0), value]):
                return ast.Call(ast.Attribute(method.value, "append"), [value], [])
        return None

    return [changed(statement, change) for statement in body]


def grown(body: Sequence[ast.stmt], torch: str, code: Code) -> tuple[list[ast.stmt], dict[str, Joined]]:
    """Returns the body with `parts.append(y)` in place of `out = torch.cat([out, y], dim)`, and the tensors that grow
    so."""
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
                axis = axis_of(call, code)
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
    """Returns the names of lists that the reached statements append to, with the ids of the nodes that do so."""
    found: dict[str, set[int]] = {}
    for statement in body:
        for node in (one for one in ast.walk(statement) if one in code.flow.reached or one not in code.parents):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) as one, attr=how))) if how in (
                    "append",
                    "extend",
                    "insert",
                ):
                    found.setdefault(name, set()).add(id(one))
                case ast.AugAssign(target=ast.Name(id=name) as one, op=ast.Add(), value=ast.List()):
                    found.setdefault(name, set()).add(id(one))
    stored = {
        name: {id(one) for part in body for one in ast.walk(part) if isinstance(one, ast.Name) and one.id == name}
        for name in found
    }
    # A list that the turn itself creates does not outlive the turn.
    return {name: nodes for name, nodes in found.items() if not _is_made(body, name, stored[name] - nodes)}


def _is_made(body: Sequence[ast.stmt], name: str, others: set[int]) -> bool:
    return any(
        isinstance(statement, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == name and id(one) in others for one in statement.targets)
        for statement in body
    )


def joined(name: str, loop: ast.AST, code: Code) -> Joined | None:
    """Returns how the list is joined after the loop. If the list is only passed on, it counts as joined in the same way
    as all other lists of the function; the comparison with the module shows whether this is right."""
    inside = {id(node) for node in ast.walk(loop)}
    mine = {id(node) for node in uses(name, loop, code)}
    others = [node for node in ast.walk(code.flow.function) if isinstance(node, ast.Call) and id(node) not in inside]
    calls = [node for node in others if _way(node, code) is not None]
    own = [call for call in calls if _list(call) == name]
    counted = [node for node in others if _called(node) in ("sum", "len") and _list(node) == name]
    known = [found for call in own or ([] if counted else calls) if (found := _way(call, code)) is not None]
    ways = set(known) or {("stack", 0)}
    way, axis = next(iter(ways))
    if len(ways) != 1 or axis is None or (way == "cat" and counted) or not (known or counted):
        return None
    if way == "stack" and (is_filled(name, loop, code) or not _only_joined(mine, _read(inside, own, counted), code)):
        swaps = in_pieces(name, axis, loop, code)
        return None if swaps is None else Joined(way, axis, pieces=True, swaps=swaps)
    is_stack = way == "stack"
    read = _read(inside, own, counted)
    if not _only_joined(mine, read, code, appends=not is_stack) or (is_stack and not (own or counted)):
        return None
    texts = {"sum": f"{{}}.sum({axis})", "len": f"{{}}.shape[{axis}]"}
    reads = [(call, texts.get(_called(call), "{}")) for call in (*own, *counted)]
    return Joined(way, axis, tuple(reads) if is_stack else ())


def _read(inside: Set[int], *calls: Sequence[ast.Call]) -> set[int]:
    """Returns the ids of the nodes in a loop and of the first arguments of calls."""
    return {*inside, *(id(call.args[0]) for held in calls for call in held)}


def _way(call: ast.Call, code: Code) -> tuple[str, int | None] | None:
    """Returns the function and the axis of a call that joins a named list. None for other calls."""
    match call.func:
        case ast.Attribute(attr="cat" | "concat" | "stack" as how) if _list(call):
            return "stack" if how == "stack" else "cat", axis_of(call, code)
    return None


def _list(call: ast.Call) -> str:
    """Returns the list that is the first argument, also if it is reversed. Empty if there is none."""
    held = forwards(call.args[0]) if call.args else None
    return held.id if isinstance(held, ast.Name) else ""


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _only_joined(mine: Set[int], allowed: Set[int], code: Code, *, appends: bool = False) -> bool:
    """Whether the nodes `mine`, which name a list, otherwise only bind it. With `appends` they may also append to it,
    or put it into another list."""
    for node in ast.walk(code.flow.function):
        if not isinstance(node, ast.Name) or id(node) not in mine - allowed or isinstance(node.ctx, ast.Store):
            continue
        above = code.parents.get(node)
        is_appended = isinstance(above, ast.Attribute) and above.attr in ("append", "extend")
        if not appends or not (is_appended or isinstance(above, ast.List | ast.Tuple)):
            return False
    return True


def axis_of(call: ast.Call, code: Code) -> int | None:
    """Returns the axis of torch.cat or torch.stack, or None if it is unknown."""
    given = keyword_or(call, 1, "dim", "axis")
    return 0 if given is None else code.number(given)
