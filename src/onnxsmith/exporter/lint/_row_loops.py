"""Reads a loop over rows of tensors: the tensors, the axis, and the body in terms of rows."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxsmith.exporter.lint._branch_merging import changed
from onnxsmith.exporter.lint._syntax import method_call


@dataclass(frozen=True)
class Rows:
    """A loop over rows. In `body`, the rows of `tensors` are replaced by `names`. `sources` are the tensors with the
    rows along the first axis. In `for turn in range(start, stop)`, `turn` is the index; in `for row in tensor` it is
    empty."""

    body: list[ast.stmt]
    names: list[str]
    tensors: list[str]
    sources: list[ast.expr]
    turn: str = ""
    start: ast.expr | None = None
    stop: ast.expr | None = None

    def is_used(self, parts: Iterable[ast.AST]) -> bool:
        """Whether the index of the turn is used other than to read rows."""
        return any(isinstance(n, ast.Name) and n.id == self.turn for one in parts for n in ast.walk(one))


def rows_of(loop: ast.For, lines: list[ast.stmt]) -> Rows | None:
    """Returns the rows that the `lines` of a turn read, or None if the loop is not over rows."""
    match loop:
        case ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=args, keywords=[])):
            if len(args) > 2:
                return None
            start, stop = args if len(args) == 2 else (None, args[0])
            found: dict[tuple[str, int], ast.Name] = {}

            def row(node: ast.AST) -> ast.AST | None:
                match node:
                    case ast.Subscript(value=ast.Name(id=tensor) as of, slice=at, ctx=ast.Load()):
                        axis = axis_of(at, turn)
                        if axis is None:
                            return None
                        found[tensor, axis] = of
                        own = ast.Name(_row_name(tensor, axis, found))
                        left = [
                            part for part in (at.elts if isinstance(at, ast.Tuple) else []) if not _is_turn(part, turn)
                        ]
                        return own if all(map(_is_whole, left)) else ast.Subscript(own, ast.Tuple(left))
                return None

            body = [changed(statement, row) for statement in lines]
            names = [_row_name(tensor, axis, found) for tensor, axis in found]
            tensors = [tensor for tensor, _ in found]
            sources = [_rows_first(of, axis, start, stop) for (_, axis), of in found.items()]
            return Rows(body, names, tensors, sources, turn, start, stop) if found else None
        case ast.For(target=ast.Name(id=name), iter=source):
            return Rows(lines, [name], [ast.unparse(source)], [source])
    return None


def axis_of(at: ast.expr, turn: str) -> int | None:
    """Returns the axis that `i` indexes in `x[i]`, `x[:, i]` or `x[:, i, 2:]`, or None for any other index."""
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
    """Moves the axis to the front of the tensor and cuts it to the rows of the loop."""
    own = [f"{tensor.id}.shape[{axis}]", f"{tensor.id}.size({axis})", *([f"len({tensor.id})"] if axis == 0 else [])]
    first: ast.expr = tensor
    if axis:
        first = method_call(tensor, "movedim", ast.Constant(axis), ast.Constant(0))
    end = None if ast.unparse(stop) in own else stop
    return ast.Subscript(first, ast.Slice(start, end, None)) if start or end else first
