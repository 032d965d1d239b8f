"""Rewrites the branches of a turn that depend on its number: the graph computes both sides and chooses one."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from onnxsmith.exporter.lint._block_states import written
from onnxsmith.exporter.lint._name_binding import names, stored
from onnxsmith.exporter.lint._syntax import method_call, torch_call
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code


def without_continue(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the lines with `if test: …; continue` and the lines after it as `if test: … else: …`."""
    for place, statement in enumerate(body):
        match statement:
            case ast.If(body=[*lines, ast.Continue()], orelse=[]):
                rest = without_continue(body[place + 1 :]) or [ast.Pass()]
                made = ast.If(statement.test, lines, rest) if lines else ast.If(_not(statement.test), rest, [])
                return [*body[:place], ast.copy_location(made, statement)]
    return list(body)


def _not(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def in_every_turn(body: Sequence[ast.stmt], last: Mapping[str, str]) -> list[ast.stmt]:
    """Returns the lines with `y = h` in place of `if i == n - 1: y = h`, if no turn reads y. The last turn binds y
    last, so the result is the same. `last` maps the names of indices to the text of their last value."""
    made: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.If(
                test=ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[value]), body=lines, orelse=[]
            ) if last.get(name) == ast.unparse(value) and _only_binds(lines, body):
                made += lines
            case _:
                made.append(statement)
    return made


def _only_binds(lines: Sequence[ast.stmt], body: Sequence[ast.stmt]) -> bool:
    targets = [one for line in lines if isinstance(line, ast.Assign) for one in line.targets]
    if len(targets) != len(lines) or not all(isinstance(one, ast.Name) for one in targets):
        return False
    bound = {one.id for one in targets if isinstance(one, ast.Name)}
    return sum(one.id in bound for one in names(body)) == len(targets)


@dataclass(frozen=True)
class Choosing:
    """Replaces branches by choices. `numbers` are the names that change from turn to turn, `known` the names that are
    bound before the lines, `torch` the file's name for torch."""

    numbers: Set[str]
    known: Set[str]
    code: Code
    torch: str

    def lines(self, body: Sequence[ast.stmt], depth: int = 0) -> list[ast.stmt]:
        """Returns the lines with both sides of such branches, followed by torch.where."""
        made: list[ast.stmt] = []
        known = set(self.known)
        for statement in body:
            one = Choosing(self.numbers, known, self.code, self.torch)
            if isinstance(statement, ast.If) and self._asks(statement.test) and _can_be_both(statement):
                made += one._both(statement, depth)
            else:
                made.append(statement)
            known |= {*stored([statement])} if isinstance(statement, ast.Assign) else set()
        return made

    def _asks(self, test: ast.expr) -> bool:
        numbers = [one for one in names([test]) if self.code.flow.kind(one) in (Kind.OTHER, Kind.SIZE)]
        plain = all(isinstance(one, _PLAIN) for one in ast.walk(test))
        changes = any(one.id in self.numbers for one in numbers)
        return plain and changes and self.code.flow.kind(test) in (Kind.OTHER, Kind.SIZE)

    def _both(self, node: ast.If, depth: int) -> list[ast.stmt]:
        end = f"_{depth}" if depth else ""
        sides = [set(stored(side)) | set(written(side)) for side in (node.body, node.orelse)]
        held = sorted((sides[0] | sides[1]) & self.known)
        merged = sorted(set(held) | (sides[0] & sides[1]))
        chosen = f"chosen{end}"
        made: list[ast.stmt] = [_bind(chosen, self._condition(node.test))]
        # both sides start from the values before the branch
        made += [_bind(f"{name}_before{end}", ast.Name(name, ast.Load())) for name in held]
        made += [*_copies(node.body), *self.lines(node.body, depth + 1)]
        made += [_bind(f"{name}_then{end}", ast.Name(name, ast.Load())) for name in merged]
        made += [_bind(name, ast.Name(f"{name}_before{end}", ast.Load())) for name in held]
        made += [*_copies(node.orelse), *self.lines(node.orelse, depth + 1)]
        return made + [_bind(name, self._where(chosen, name, f"{name}_then{end}", node)) for name in merged]

    def _where(self, chosen: str, name: str, then: str, node: ast.If) -> ast.expr:
        kinds = {self.code.flow.kind(one) for one in names([node]) if one.id == name and isinstance(one.ctx, ast.Store)}
        if Kind.MANY not in kinds:
            return torch_call(self.torch, "where", ast.Name(chosen), ast.Name(then), ast.Name(name))
        text = f"tuple({self.torch}.where({chosen}, one, other) for one, other in zip({then}, {name}))"
        return ast.parse(text, mode="eval").body

    def _condition(self, test: ast.expr) -> ast.expr:
        """Returns the test as a boolean tensor of rank 0."""
        match test:
            case ast.BoolOp(op=op, values=[first, *more]):
                found = self._condition(first)
                for one in more:
                    name = "logical_and" if isinstance(op, ast.And) else "logical_or"
                    found = torch_call(self.torch, name, found, self._condition(one))
                return found
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return torch_call(self.torch, "logical_not", self._condition(inner))
            case ast.Compare(left=left, ops=ops, comparators=right):
                parts = [left, *right]
                pairs = [
                    ast.Compare(self._number(one), [op], [self._number(other)])
                    for one, op, other in zip(parts, ops, right, strict=False)
                ]
                held: ast.expr = pairs[0]
                for pair in pairs[1:]:
                    held = torch_call(self.torch, "logical_and", held, pair)
                return held
        return ast.Compare(self._number(test), [ast.NotEq()], [ast.Constant(0)])

    def _number(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant):
            return node
        kind = ast.keyword("dtype", ast.Attribute(ast.Name(self.torch), "int64"))
        return ast.Call(ast.Attribute(ast.Name(self.torch), "full"), [ast.Tuple([]), node], [kind])


_PLAIN = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Call),
    *(ast.operator, ast.boolop, ast.unaryop, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.expr_context),
)
"""The nodes of a test on whole numbers, without `is` and `in`."""


def _bind(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _copies(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Copies the tensors that a side writes to in place, because the other side needs the old values."""
    return [_bind(name, method_call(ast.Name(name, ast.Load()), "clone")) for name in sorted(set(written(body)))]


def _can_be_both(node: ast.If) -> bool:
    """Whether both sides may run: neither leaves the loop or appends to a list."""
    for one in ast.walk(node):
        match one:
            case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
                return False
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "insert")):
                return False
            case ast.AugAssign(op=ast.Add(), value=ast.List()):
                return False
    return True
