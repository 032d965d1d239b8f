"""Reads the header of a loop whose number of turns (iterations) depends on a size: how many turns, and the names that
each binds."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._syntax import expression, keyword_or, substituted
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code

TURN = "number"
"""The name of the turn's number in the patch."""


@dataclass(frozen=True)
class Turns:
    """The turns of a loop.

    `count` is their number. `bound` are the (target, value) pairs of a turn, in terms of the turn's number; `before`
    are those bound once before the loop. `index` maps the names of indices to the text of their first value, `last` to
    that of their last value, where it is known. With a `test` on tensors, the loop runs as long as it is true.
    `removed` is a statement before the loop that is no longer needed.
    """

    count: str
    bound: Sequence[tuple[str, str]]
    before: Sequence[tuple[str, str]] = ()
    index: Sequence[tuple[str, str]] = ()
    last: Sequence[tuple[str, str]] = ()
    test: str = ""
    removed: ast.stmt | None = None


def turns_of(target: ast.expr, source: ast.expr, code: Code) -> Turns | None:
    """Returns the turns of `for target in source`, or None if the source is not a range, blocks, or rows of tensors."""
    match source:
        case ast.Call(func=ast.Name(id="list" | "tuple" | "iter"), args=[inner], keywords=[]):
            return turns_of(target, inner, code)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return _numbered(target, inner, keyword_or(source, 1, "start"), code)
        case ast.Call(func=ast.Name(id="zip"), args=parts) if isinstance(target, ast.Tuple) and len(parts) == len(
            target.elts
        ):
            return _together([turns_of(one, part, code) for one, part in zip(target.elts, parts, strict=True)])
        case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
            return _backwards(turns_of(target, inner, code))
        case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if isinstance(target, ast.Name):
            return _range(target.id, args, code)
    name = ast.unparse(target)
    if isinstance(source, ast.Name):
        statement = _bound_once(source, code)
        found = turns_of(target, statement.value, code) if statement is not None else None
        return replace(found, removed=statement) if found is not None else _rows(name, source, code)
    match source:
        case ast.Call(func=ast.Attribute(value=owner, attr="split" | "chunk" | "unbind" | "unsafe_split" as how)):
            is_method = code.flow.kind(owner) is Kind.TENSOR
            tensor = owner if is_method else source.args[0] if source.args else None
            if how == "chunk" and not _follows(source, code):
                return None
            if tensor is not None and (is_method or code.flow.kind(tensor) is Kind.TENSOR):
                return _pieces(name, tensor, how, source, code)
    return _rows(name, source, code)


def _backwards(turns: Turns | None) -> Turns | None:
    """Returns the same turns in reverse order."""
    if turns is None or turns.removed is not None:
        return None
    number = "at_last"
    before = [*turns.before, (number, f"{turns.count} - 1")]
    bound = [(name, substituted(value, {TURN: f"{number} - {TURN}"})) for name, value in turns.bound]
    return Turns(turns.count, bound, before, turns.last, turns.index)


def _rows(name: str, source: ast.expr, code: Code) -> Turns | None:
    """Returns the turns of `for name in tensor`."""
    if code.flow.kind(source) is not Kind.TENSOR:
        return None
    own = _own_name(source)
    before = [] if own == ast.unparse(source) else [(own, _copied(source, code))]
    return Turns(f"{own}.shape[0]", [(name, f"{own}[{TURN}]")], before)


def _range(name: str, args: Sequence[ast.expr], code: Code) -> Turns | None:
    texts = [_sized(one, code) for one in args]
    if not 1 <= len(texts) <= 3:
        return None
    start, stop = (texts[0], texts[1]) if len(texts) > 1 else ("0", texts[0])
    step = texts[2] if len(texts) == 3 else "1"
    if step.startswith("-"):
        return _down(name, start, stop, _bracketed(step[1:])) if len(texts) == 3 else None
    return range_turns(name, start, stop, step)


def _down(name: str, start: str, stop: str, step: str) -> Turns:
    """Returns the turns of `for name in range(start, stop, -step)`."""
    count = _plain(f"{start} + 1" if stop == "-1" else f"{start} - {_bracketed(stop)}")
    if step != "1":
        count = f"({count} + {step} - 1) // {step}"
    value = f"{start} - {TURN}" if step == "1" else f"{start} - {TURN} * {step}"
    last = _plain(f"{stop} + 1") if step == "1" else ""
    return Turns(count, [(name, value)], index=[(name, start)], last=[(name, last)])


def _plain(text: str) -> str:
    """Simplifies the text of a number: without `- 1 + 1`, as users write it."""
    return {"-1 + 1": "0", "0 + 1": "1"}.get(text, text.removesuffix(" - 1 + 1"))


def range_turns(name: str, start: str, stop: str, step: str) -> Turns:
    """Returns the turns of `for name in range(start, stop, step)`."""
    length = _bracketed(stop) if start == "0" else f"({stop} - {_bracketed(start)})"
    count = stop if start == "0" and step == "1" else f"({length} + {_bracketed(step)} - 1) // {_bracketed(step)}"
    if step == "1":
        count = stop if start == "0" else length
    value = TURN if step == "1" else f"{TURN} * {_bracketed(step)}"
    last = [(name, ast.unparse(expression(f"{stop} - 1")))] if step == "1" else []
    return Turns(count, [(name, value if start == "0" else f"{start} + {value}")], index=[(name, start)], last=last)


def _numbered(target: ast.expr, inner: ast.expr, start: ast.expr | None, code: Code) -> Turns | None:
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
        return None
    found = turns_of(target.elts[1], inner, code)
    if found is None:
        return None
    first = ast.unparse(start) if start is not None else "0"
    number = target.elts[0].id
    value = TURN if first == "0" else f"{TURN} + {first}"
    last = [(number, f"{found.count} - 1"), *found.last] if first == "0" else found.last
    return Turns(found.count, [(number, value), *found.bound], found.before, [(number, first), *found.index], last)


def _together(parts: Sequence[Turns | None]) -> Turns | None:
    found = [_renamed(one, place) for place, one in enumerate(parts) if one is not None]
    if len(found) < len(parts) or not found or any(one.removed is not None for one in found):
        return None
    counts = list(dict.fromkeys(one.count for one in found))
    count = counts[0] if len(counts) == 1 else f"min({', '.join(counts)})"
    return Turns(
        count,
        [pair for one in found for pair in one.bound],
        [pair for one in found for pair in one.before],
        [pair for one in found for pair in one.index],
        [pair for one in found for pair in one.last] if len(counts) == 1 else (),
    )


def _renamed(turns: Turns, place: int) -> Turns:
    """Renames the values that the turns bind before the loop, because `zip` combines several sources with the same
    names."""
    names = {name: f"{name}_{place}" for name, _ in turns.before if place}
    if not names:
        return turns
    pairs = [(names[name], substituted(value, names)) for name, value in turns.before]
    bound = [(name, substituted(value, names)) for name, value in turns.bound]
    return replace(turns, count=substituted(turns.count, names), bound=bound, before=pairs)


def _pieces(name: str, tensor: ast.expr, how: str, call: ast.Call, code: Code) -> Turns | None:
    """Returns the turns over `tensor.split(size, dim)`, `tensor.chunk(count, dim)`, `tensor.unbind(dim)`."""
    is_rows, place = how == "unbind", int(tensor in call.args)
    dim = keyword_or(call, place if is_rows else place + 1, "dim", "axis")
    axis = 0 if dim is None else code.number(dim)
    size = None if is_rows else keyword_or(call, place, "split_size", "split_size_or_sections", "chunks")
    if axis is None or (size is None and not is_rows):
        return None
    own = _own_name(tensor)
    before = [] if own == ast.unparse(tensor) else [(own, _copied(tensor, code))]
    length = f"{own}.shape[{axis}]"
    if size is None:
        return Turns(length, [(name, f"{own}.select({axis}, {TURN})")], before)
    if isinstance(size, ast.List | ast.Tuple):
        return None
    width = _bracketed(ast.unparse(size))
    if how == "chunk":
        before = [*before, (f"{own}_width", f"({length} + {width} - 1) // {width}")]
        width = f"{own}_width"
    part = f"{TURN} * {width}:({TURN} + 1) * {width}"
    around = [":"] * axis + [part] if axis >= 0 else ["...", part] + [":"] * (-1 - axis)
    count = f"({length} + {width} - 1) // {width}"
    return Turns(count, [(name, f"{own}[{', '.join(around)}]")], before)


def _bound_once(name: ast.Name, code: Code) -> ast.Assign | None:
    """Returns the statement that binds the blocks to this name, if only the loop reads the name and the tensor keeps
    its value."""
    found = [one for one in ast.walk(code.flow.function) if isinstance(one, ast.Name) and one.id == name.id]
    above = [code.parents[one] for one in found if isinstance(one.ctx, ast.Store)]
    if len(found) != 2 or len(above) != 1 or not isinstance(above[0], ast.Assign) or len(above[0].targets) != 1:
        return None
    match above[0].value:
        case ast.Call(func=ast.Attribute(value=owner, attr="split" | "unbind")) as call:
            tensor = owner if code.flow.kind(owner) is Kind.TENSOR else call.args[0] if call.args else owner
            stores = [
                one
                for one in ast.walk(code.flow.function)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id == getattr(tensor, "id", "")
            ]
            is_kept = isinstance(tensor, ast.Name) and all(one.lineno < above[0].lineno for one in stores)
            return above[0] if is_kept else None
    return None


def _follows(call: ast.Call, code: Code) -> bool:
    """Whether an argument of the call depends on a size."""
    return any(code.flow.kind(one) is Kind.SIZE for one in (*call.args, *(pair.value for pair in call.keywords)))


def _own_name(tensor: ast.expr) -> str:
    """Returns the name of the tensor, or a new name if it is an expression."""
    return tensor.id if isinstance(tensor, ast.Name) else "whole"


def _copied(tensor: ast.expr, code: Code) -> str:
    """Returns a copy, because torch.while_loop rejects tensors of the outer function that share memory."""
    return f"{ast.unparse(tensor)}.clone(memory_format={code.torch}.contiguous_format)"


def _sized(node: ast.expr, code: Code) -> str:
    """Returns the text of an expression with `x.shape[0]` in place of `len(x)`, which a trace would fix."""

    def length(one: ast.AST) -> ast.AST | None:
        match one:
            case ast.Call(func=ast.Name(id="len"), args=[tensor]) if code.flow.kind(tensor) is Kind.TENSOR:
                return expression(f"{ast.unparse(tensor)}.shape[0]")
        return None

    return ast.unparse(changed(node, length))


def _bracketed(text: str) -> str:
    """Puts the text in brackets, unless it is a name, number, attribute, subscript or call."""
    is_simple = isinstance(expression(text), ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Call)
    return text if is_simple else f"({text})"
