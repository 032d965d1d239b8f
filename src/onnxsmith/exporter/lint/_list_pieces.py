"""Lists with elements from before or after a loop become lists of pieces, which torch.cat joins.

Example: `ys = [y0]`, then a loop that appends, then `torch.stack(ys, 1)`. After the loop, the list holds
`y0.unsqueeze(1)` and the tensor of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._syntax import expression, method_call, written
from onnxsmith.exporter.lint.base import Code, New


def is_filled(name: str, loop: ast.AST, code: Code) -> bool:
    """Whether the list may have elements before the loop."""
    for node in uses(name, loop, code):
        if not _is_before(node, loop):
            continue
        above = code.parents.get(node)
        if isinstance(above, ast.Attribute) and above.attr in ("append", "extend", "insert"):
            return True
        if isinstance(node.ctx, ast.Store) and not _is_empty(_assigned(node, code)):
            return True
    return False


def _assigned(node: ast.Name, code: Code) -> ast.expr | None:
    """Returns the expression that is assigned to this name, or None if it cannot be told."""
    above = code.parents.get(node)
    match above, code.statement(node):
        case ast.Assign(value=value) | ast.AnnAssign(value=value), _:
            return value
        case ast.Tuple(elts=targets), ast.Assign(targets=[one], value=ast.Tuple(elts=values)) if one is above:
            return values[targets.index(node)] if len(values) == len(targets) else None
    return None


def _is_empty(value: ast.expr | None) -> bool:
    return value is not None and ast.unparse(value) in ("[]", "list()")


def in_pieces(name: str, axis: int, loop: ast.AST, code: Code) -> dict[ast.AST, New] | None:
    """Returns the new nodes for code that reads a list of pieces after the loop, or None if some code cannot be
    rewritten."""
    swaps: dict[ast.AST, New] = {}
    for node in uses(name, loop, code):
        if _is_before(node, loop):
            if isinstance(node.ctx, ast.Load) and not isinstance(code.parents.get(node), ast.Attribute | ast.Subscript):
                return None
            continue
        if isinstance(node.ctx, ast.Store) or any(isinstance(one, ast.For | ast.While) for one in code.up(node)):
            return None
        found = _swap(node, axis, code)
        if found is None:
            return None
        swaps[found[0]] = found[1]
    return swaps


def _swap(node: ast.Name, axis: int, code: Code) -> tuple[ast.AST, New] | None:
    """Returns the node to replace, and its replacement, where `node` reads the list. None if the code is not known."""
    name, above = node.id, code.parents[node]
    call = code.parents.get(above)
    match above, call:
        case ast.Attribute(attr="append"), ast.Call(args=[value], keywords=[]):
            return value, method_call(value, "unsqueeze", ast.Constant(axis))
        case ast.Attribute(attr="insert"), ast.Call(args=[ast.Constant(value=0), value], keywords=[]):
            return value, method_call(value, "unsqueeze", ast.Constant(axis))
        case ast.Attribute(attr="reverse"), ast.Call(args=[]) if isinstance(code.parents.get(call), ast.Expr):
            return code.parents[call], written(f"{name} = [one.flip({axis}) for one in reversed({name})]")
        case ast.Subscript(slice=at), _ if ast.unparse(at) in ("0", "-1"):
            return above, expression(f"{code.torch}.cat({name}, {axis}).select({axis}, {ast.unparse(at)})")
        case ast.Call(func=ast.Name(id="len")), _:
            return above, expression(f"sum(one.shape[{axis}] for one in {name})")
        case ast.Call(func=ast.Name(id="sum")), _:
            return above, expression(f"sum(one.sum({axis}) for one in {name})")
    for one in code.up(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "stack":
            whole = ast.Call(ast.Attribute(one.func.value, "cat"), [ast.Name(name), ast.Constant(axis)], [])
            if one.args and forwards(one.args[0]) is node:
                return one, whole if one.args[0] is node else method_call(whole, "flip", ast.Constant(axis))
    return None


def forwards(node: ast.expr) -> ast.expr:
    """Returns the list of `parts[::-1]`, `reversed(parts)` and `list(reversed(parts))`, and any other node
    unchanged."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=step)):
            return inner if step is not None and ast.unparse(step) == "-1" else node
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.Call(func=ast.Name(id="reversed"), args=[inner])]):
            return inner
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            return inner
    return node


def last_read(
    body: Sequence[ast.stmt], index: Mapping[str, str], loop: ast.AST, code: Code
) -> tuple[list[ast.stmt], list[str]]:
    """Returns the lines of a turn with `ys_last` in place of `ys[-1]`, and these lists.

    `index` maps the names of indices to the text of their first value. If this value is the length of the list, `ys[i -
    1]` is the last element too.
    """
    added = {
        node.func.value.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and isinstance(node.func.value, ast.Name)
    }
    found: dict[str, None] = {}

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=at, ctx=ast.Load()) if name in added:
                length = _length(name, loop, code)
                if ast.unparse(at) in ("-1", *(f"{one} - 1" for one, first in index.items() if first == length)):
                    found[name] = None
                    return ast.Name(f"{name}_last", ast.Load())
        return None

    return [changed(statement, change) for statement in body], list(found)


def _length(name: str, loop: ast.AST, code: Code) -> str:
    """Returns the length of a list before the loop, as text, if a single assignment gives all its elements; else
    empty."""
    before = [node for node in uses(name, loop, code) if _is_before(node, loop)]
    value = _assigned(before[0], code) if len(before) == 1 else None
    is_plain = isinstance(value, ast.List) and not any(isinstance(one, ast.Starred) for one in value.elts)
    return str(len(value.elts)) if is_plain and isinstance(value, ast.List) else ""


def with_last(body: Sequence[ast.stmt], lists: Sequence[str]) -> list[ast.stmt]:
    """Returns the lines of a turn, which then keep the element appended last to each of these lists."""
    made: list[ast.stmt] = []
    for statement in body:
        made.append(statement)
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))) if name in lists:
                at = ast.Subscript(ast.Name(name), ast.Constant(-1))
                made.append(ast.Assign([ast.Name(f"{name}_last", ast.Store())], at))
    return made


def uses(name: str, loop: ast.AST, code: Code) -> list[ast.Name]:
    """Returns the nodes outside a loop in which the name of the loop's list occurs, up to a later statement that gives
    the name another value."""
    inside = {id(node) for node in ast.walk(loop)}
    nodes = (node for node in ast.walk(code.flow.function) if isinstance(node, ast.Name) and id(node) not in inside)
    found = [node for node in nodes if node.id == name]
    block = code.block(loop) if isinstance(loop, ast.stmt) else []
    anew = [
        code.statement(node)
        for node in found
        if isinstance(node.ctx, ast.Store) and not _is_before(node, loop) and code.statement(node) in block
    ]
    if not anew:
        return found
    first = min(anew, key=lambda one: one.lineno)
    end = first.end_lineno or first.lineno
    return [
        node
        for node in found
        if node.lineno <= end and not (isinstance(node.ctx, ast.Store) and code.statement(node) is first)
    ]


def _is_before(node: ast.Name, loop: ast.AST) -> bool:
    return node.lineno < getattr(loop, "lineno", 0)
