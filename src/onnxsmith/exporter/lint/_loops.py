"""Loops on data or over an axis, written with torch.while_loop, scan and vmap, which a graph can hold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    go; a tensor whose rows it writes gets them all at once. None when it is more than that and assignments."""
    rows = _rows(loop)
    if rows is None or loop.orelse:
        return None
    appended: dict[str, ast.expr] = {}
    written: list[ast.stmt] = []
    kept: list[ast.stmt] = []
    for place, statement in enumerate(rows.body, 1):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                new = value
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value])):
                new = value
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=tensor)) as target], value=value):
                if rows.stop is None or not _only_described(tensor, loop, target):
                    return None
                axis = _axis(target.slice, rows.turn)
                if axis is None:
                    return None
                name, new = f"{tensor}_rows", value
                written.append(_all_at_once(tensor, name, axis, rows))
            case _:
                kept.append(statement)
                continue
        if name in appended:
            return None
        if _bound(rows.body[place:]) & {node.id for node in ast.walk(new) if isinstance(node, ast.Name)}:
            kept.append(ast.Assign([ast.Name(f"{name}_now")], new))  # what it is made of is something else later
            new = ast.Name(f"{name}_now")
        appended[name] = new
    if rows.is_used([*kept, *appended.values()]):
        return None
    carried = _assigned(kept, env) if kept else []
    if carried is None or not (carried or appended) or _left_over([*carried, *appended], loop, function):
        return None
    if set(carried) & set(rows.tensors):
        return None
    swaps = _without_stacks(appended, function, loop, torch)
    if swaps is None:
        return None
    names, sources = rows.names, rows.sources
    given: ast.expr = _tuple([ast.Name(name) for name in names]) if len(names) > 1 else ast.Name(names[0])
    xs = _tuple(sources) if len(sources) > 1 else sources[0]
    results = [*appended.values()]
    if not carried:
        turn = _function("turn", names, [*kept, ast.Return(_tuple(results) if len(results) > 1 else results[0])])
        call = ast.Call(_torch(torch, "vmap", ast.Name("turn")), sources, [])
        swaps[loop] = [turn, ast.Assign([_names(list(appended))], call), *written]
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
    call = ast.Call(scan, [ast.Name("turn"), starts, xs], [])
    swaps[loop] = [turn, ast.Assign([_tuple([states, left])], call), *written]
    return swaps


@dataclass(frozen=True)
class _Rows:
    """The body of a loop with `names` in the place of rows of `tensors`, which are `sources` with the rows first.
    `turn` counts from `start` to before `stop`, where it counts."""

    body: list[ast.stmt]
    names: list[str]
    tensors: list[str]
    sources: list[ast.expr]
    turn: str = ""
    start: ast.expr | None = None
    stop: ast.expr | None = None

    def is_used(self, parts: Iterable[ast.AST]) -> bool:
        """Whether the number of the turn is used for anything but rows."""
        return any(isinstance(n, ast.Name) and n.id == self.turn for one in parts for n in ast.walk(one))


def _rows(loop: ast.For) -> _Rows | None:
    match loop:
        case ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=args, keywords=[])):
            if len(args) > 2:
                return None
            start, stop = args if len(args) == 2 else (None, args[0])
            found: dict[tuple[str, int], ast.Name] = {}

            def row(node: ast.AST) -> ast.AST | None:
                match node:
                    case ast.Subscript(value=ast.Name(id=tensor) as of, slice=at, ctx=ast.Load()):
                        axis = _axis(at, turn)
                        if axis is None:
                            return None
                        found[tensor, axis] = of
                        own = ast.Name(_row_name(tensor, axis, found))
                        left = [
                            part for part in (at.elts if isinstance(at, ast.Tuple) else []) if not _is_turn(part, turn)
                        ]
                        return own if all(map(_is_whole, left)) else ast.Subscript(own, ast.Tuple(left))
                return None

            body = [changed(statement, row) for statement in loop.body]
            names = [_row_name(tensor, axis, found) for tensor, axis in found]
            tensors = [tensor for tensor, _ in found]
            sources = [_rows_first(of, axis, start, stop) for (_, axis), of in found.items()]
            return _Rows(body, names, tensors, sources, turn, start, stop) if found else None
        case ast.For(target=ast.Name(id=name), iter=source):
            return _Rows(loop.body, [name], [ast.unparse(source)], [source])
    return None


def _axis(at: ast.expr, turn: str) -> int | None:
    """Which axis `x[i]`, `x[:, i]` or `x[:, i, 2:]` takes the row of."""
    parts = at.elts if isinstance(at, ast.Tuple) else [at]
    places = [place for place, part in enumerate(parts) if _is_turn(part, turn)]
    if len(places) != 1 or not all(map(_is_whole, parts[: places[0]])):
        return None
    rest = parts[places[0] + 1 :]
    return None if any(isinstance(n, ast.Name) and n.id == turn for part in rest for n in ast.walk(part)) else places[0]


def _is_turn(part: ast.expr, turn: str) -> bool:
    return isinstance(part, ast.Name) and part.id == turn


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def _row_name(tensor: str, axis: int, found: Mapping[tuple[str, int], ast.Name]) -> str:
    first = next(number for name, number in found if name == tensor)
    return f"{tensor}_row" if first == axis else f"{tensor}_row_{axis}"


def _rows_first(tensor: ast.Name, axis: int, start: ast.expr | None, stop: ast.expr) -> ast.expr:
    """The tensor with that axis first, and a row for each turn."""
    own = [f"{tensor.id}.shape[{axis}]", f"{tensor.id}.size({axis})", *([f"len({tensor.id})"] if axis == 0 else [])]
    first: ast.expr = tensor
    if axis:
        first = ast.Call(ast.Attribute(tensor, "movedim"), [ast.Constant(axis), ast.Constant(0)], [])
    end = None if ast.unparse(stop) in own else stop
    return ast.Subscript(first, ast.Slice(start, end, None)) if start or end else first


def _all_at_once(tensor: str, rows: str, axis: int, turns: _Rows) -> ast.stmt:
    """`tensor[:, i] = …` of all turns."""
    moved: ast.expr = ast.Name(rows)
    if axis:
        moved = ast.Call(ast.Attribute(moved, "movedim"), [ast.Constant(0), ast.Constant(axis)], [])
    cast = ast.Call(ast.Attribute(moved, "to"), [ast.Attribute(ast.Name(tensor), "dtype")], [])
    assert turns.stop is not None
    given = [cast, ast.Constant(axis), turns.start or ast.Constant(0), turns.stop]
    return ast.Assign([ast.Name(tensor)], ast.Call(ast.Attribute(ast.Name(tensor), "slice_scatter"), given, []))


def _only_described(tensor: str, loop: ast.For, target: ast.Subscript) -> bool:
    """Whether the loop takes nothing of the tensor that it writes rows of but its dtype, shape and device."""
    described = {
        id(node.value)
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and node.attr in ("dtype", "shape", "device")
    }
    names = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == tensor]
    return all(node is target.value or id(node) in described for node in names)


def _bound(parts: Iterable[ast.AST]) -> set[str]:
    """The names that they bind."""
    nodes = (node for one in parts for node in ast.walk(one) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)}


def _left_over(carried: Sequence[str], loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether something that a turn binds for itself is read after the loop."""
    own = _bound([loop])
    inside = {id(node) for node in ast.walk(loop)}
    after = [n for n in ast.walk(function) if isinstance(n, ast.Name) and id(n) not in inside]
    for name in own - set(carried):
        places = [(n.lineno, isinstance(n.ctx, ast.Store)) for n in after if n.id == name and n.lineno > loop.lineno]
        bound = min((line for line, is_bound in places if is_bound), default=None)
        if any(not is_bound and (bound is None or line < bound) for line, is_bound in places):
            return True
    return False


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
                try:
                    axis = 0 if given is None else ast.literal_eval(given)
                except ValueError:
                    return None
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
    axis = axis - 1 if how == "cat" and axis < 0 else axis
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
    if env[name].kind is Kind.TENSOR:  # scan wants the layout that each turn leaves, and no tensor twice
        plain = ast.keyword("memory_format", ast.Attribute(ast.Name(torch), "contiguous_format"))
        return ast.Call(ast.Attribute(ast.Name(name), "clone"), [], [plain])
    if env[name].kind is Kind.MANY:
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
