"""Patches for loops over an axis: `for` over the rows of tensors becomes torch.vmap or scan, which can be exported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._data_loops import Env, as_tensor, assigned
from onnxsmith.exporter.lint._list_pieces import is_filled, uses
from onnxsmith.exporter.lint._options import without_options
from onnxsmith.exporter.lint._row_loops import Rows, axis_of, rows_of
from onnxsmith.exporter.lint._syntax import function, method_call, names_of, one_or_tuple, torch_call
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code

Swaps = dict[ast.AST, ast.AST | list[ast.stmt]]


def over_axis(loop: ast.For, code: Code) -> Swaps | None:
    """Returns the patch of a loop over the rows of tensors, or None if the body does more than assign, append and write
    rows.

    Lists that the loop appends to become tensors, and torch.stack and torch.cat of them are removed. If the loop writes
    rows of a tensor, a single operation behind the loop writes all rows instead."""
    env, torch = code.flow.before.get(loop, {}), code.torch
    rows = rows_of(loop, without_options(loop.body, code))
    body = _body(rows, loop) if rows is not None and not loop.orelse else None
    if rows is None or body is None or rows.is_used([*body.kept, *body.appended.values()]):
        return None
    carried = assigned(body.kept, env) if body.kept else []
    if carried is None or not (carried or body.appended):
        return None
    # elements from before the loop would be lost
    if any(is_filled(name, loop, code) for name in body.appended):
        return None
    if _left_over([*carried, *body.appended], loop, code) or set(carried) & set(rows.tensors):
        return None
    swaps = _without_stacks(body.appended, loop, code)
    if swaps is None:
        return None
    made = _scan(rows, body, carried, env, torch) if carried else _vmap(rows, body, torch)
    swaps[loop] = [*made, *body.written]
    return swaps


def may_scan_nothing(loop: ast.For, swaps: Swaps) -> bool:
    """Whether the patch of a loop scans rows that may be none, as in `range(1, n)`. onnxruntime's Scan refuses zero
    rows."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[start, _, *_]):
            is_whole = ast.unparse(start) == "0"
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            is_whole = not isinstance(stop, ast.BinOp)
        case _:
            is_whole = not isinstance(loop.iter, ast.Subscript)
    made = swaps[loop]
    lines = made if isinstance(made, list) else []
    scans = (isinstance(one, ast.Attribute) and one.attr == "scan" for line in lines for one in ast.walk(line))
    return not is_whole and any(scans)


@dataclass(frozen=True)
class _Body:
    """The statements of a loop, sorted. `appended` maps each list to the expression that a turn appends. `written` are
    the statements after the loop that write the rows of a tensor. `kept` are all others."""

    appended: dict[str, ast.expr]
    written: list[ast.stmt]
    kept: list[ast.stmt]


def _body(rows: Rows, loop: ast.For) -> _Body | None:
    body = _Body({}, [], [])
    for place, statement in enumerate(rows.body, 1):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                new = value
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value])):
                new = value
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=tensor)) as target], value=value):
                if rows.stop is None or not _only_described(tensor, loop, target):
                    return None
                axis = axis_of(target.slice, rows.turn)
                if axis is None:
                    return None
                name, new = f"{tensor}_rows", value
                body.written.append(_all_at_once(tensor, name, axis, rows))
            case _:
                body.kept.append(statement)
                continue
        if name in body.appended:  # a turn appends two values: their order in the list would change
            return None
        if _bound(rows.body[place:]) & {node.id for node in ast.walk(new) if isinstance(node, ast.Name)}:
            # A later statement of the turn rebinds a name in the appended expression: keep its value at this point.
            body.kept.append(ast.Assign([ast.Name(f"{name}_now")], new))
            new = ast.Name(f"{name}_now")
        body.appended[name] = new
    return body


def _vmap(rows: Rows, body: _Body, torch: str) -> list[ast.stmt]:
    """Calls torch.vmap, for turns that do not depend on each other."""
    turn = function("turn", rows.names, [*body.kept, ast.Return(one_or_tuple([*body.appended.values()]))])
    call = ast.Call(torch_call(torch, "vmap", ast.Name("turn")), rows.sources, [])
    return [turn, ast.Assign([names_of(list(body.appended))], call)]


def _scan(rows: Rows, body: _Body, carried: list[str], env: Env, torch: str) -> list[ast.stmt]:
    """Calls torch's scan, for turns that read results of an earlier turn (`carried`)."""
    unpack: list[ast.stmt] = [ast.Assign([names_of(rows.names)], ast.Name("rows"))] if len(rows.names) > 1 else []
    states = ast.Tuple([ast.Name(name) for name in carried])
    # A turn always returns a result; scan rejects results that share memory with the state.
    results = [*body.appended.values()] or [ast.Name(carried[0])]
    copied: list[ast.expr] = [one if isinstance(one, ast.BinOp) else method_call(one, "clone") for one in results]
    inner = [ast.Assign([states], ast.Name("state")), *unpack, *body.kept]
    inner.append(ast.Return(ast.Tuple([states, ast.Tuple(copied)])))
    turn = function("turn", ["state", "rows" if len(rows.names) > 1 else rows.names[0]], inner)
    sources = dict(zip(rows.names, rows.sources, strict=True))
    starts = ast.Tuple([_start(name, env, torch, body.kept, sources) for name in carried])
    scan = ast.Attribute(ast.Attribute(ast.Name(torch), "_higher_order_ops"), "scan")
    left = ast.Tuple([ast.Name(name) for name in body.appended] or [ast.Name("_")])
    call = ast.Call(scan, [ast.Name("turn"), starts, one_or_tuple(rows.sources)], [])
    return [turn, ast.Assign([ast.Tuple([states, left])], call)]


def _all_at_once(tensor: str, rows: str, axis: int, turns: Rows) -> ast.stmt:
    """Writes `tensor[:, i] = …` for all turns at once."""
    moved: ast.expr = ast.Name(rows)
    if axis:
        moved = method_call(moved, "movedim", ast.Constant(0), ast.Constant(axis))
    cast = method_call(moved, "to", ast.Attribute(ast.Name(tensor), "dtype"))
    assert turns.stop is not None
    given = [cast, ast.Constant(axis), turns.start or ast.Constant(0), turns.stop]
    return ast.Assign([ast.Name(tensor)], method_call(ast.Name(tensor), "slice_scatter", *given))


def _only_described(tensor: str, loop: ast.For, target: ast.Subscript) -> bool:
    """Whether the loop reads only dtype, shape and device of the tensor whose rows it writes."""
    described = {
        id(node.value)
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and node.attr in ("dtype", "shape", "device")
    }
    names = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == tensor]
    return all(node is target.value or id(node) in described for node in names)


def _bound(parts: Iterable[ast.AST]) -> set[str]:
    """Returns the names that these nodes bind."""
    nodes = (node for one in parts for node in ast.walk(one) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)}


def _left_over(carried: Sequence[str], loop: ast.For, code: Code) -> bool:
    """Whether a name that is local to a turn is read after the loop."""
    own = _bound([loop])
    inside = {id(node) for node in ast.walk(loop)}
    nodes = ast.walk(code.flow.function)
    after = [n for n in nodes if isinstance(n, ast.Name) and id(n) not in inside and code.runs(n)]
    for name in own - set(carried):
        places = [(n.lineno, isinstance(n.ctx, ast.Store)) for n in after if n.id == name and n.lineno > loop.lineno]
        bound = min((line for line, is_bound in places if is_bound), default=None)
        if any(not is_bound and (bound is None or line < bound) for line, is_bound in places):
            return True
    return False


def _without_stacks(appended: Mapping[str, ast.expr], loop: ast.For, code: Code) -> Swaps | None:
    """Removes torch.stack and torch.cat of the lists, which are tensors after the loop. None if a list is used in any
    other way."""
    inside = {id(node) for node in ast.walk(loop)}
    swaps: Swaps = {}
    done: set[int] = set()
    for node in ast.walk(code.flow.function):
        match node:
            case ast.Call(func=ast.Attribute(attr="stack" | "cat" as how), args=[ast.Name(id=name) as read, *rest]):
                if name not in appended:
                    continue
                given = rest[0] if rest else next((k.value for k in node.keywords if k.arg in ("dim", "axis")), None)
                axis = 0 if given is None else code.number(given)
                if axis is None:
                    return None
                swaps[node] = _stacked(name, how, axis)
                done.add(id(read))
    listed = (node for name in appended for node in uses(name, loop, code) if isinstance(node.ctx, ast.Load))
    if any(id(node) not in done | inside for node in listed):
        return None
    return swaps


def _stacked(name: str, how: str, axis: int) -> ast.expr:
    """Returns `torch.stack` or `torch.cat` (`how`) of the rows of a tensor."""
    whole: ast.expr = ast.Name(name)
    # the axis counts from the end of a row, and the whole tensor has one axis more
    axis = axis - 1 if how == "cat" and axis < 0 else axis
    if axis:
        whole = method_call(whole, "movedim", ast.Constant(0), ast.Constant(axis))
    if how == "cat":
        whole = method_call(whole, "flatten", ast.Constant(axis), ast.Constant(axis + 1))
    return whole


def _start(name: str, env: Env, torch: str, body: list[ast.stmt], rows: Mapping[str, ast.expr]) -> ast.expr:
    """Returns the initial value of a state. A Python number becomes a tensor with the shape that the loop adds to
    it."""
    if (
        env[name].kind is Kind.TENSOR
    ):  # scan requires the layout of the results of a turn, and rejects a tensor given twice
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
        return ast.BinOp(ast.Name(name), ast.Add(), torch_call(torch, "zeros_like", first))
    return as_tensor(name, env, torch)
