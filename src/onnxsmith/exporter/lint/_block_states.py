"""Finds what a loop carries from turn to turn: names that a turn reads before it binds them, or that are read later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from onnxsmith.exporter.lint._values import Kind, Value
from onnxsmith.exporter.lint.base import Code


class Carried(Enum):
    """How a graph carries a name."""

    TENSOR = auto()
    SEVERAL = auto()
    """A tuple of tensors."""
    NUMBER = auto()
    """A whole number, as a tensor of rank 0."""
    FROM_NUMBER = auto()
    """A number to which the first turn adds a tensor."""
    FROM_NONE = auto()
    """None, which the first turn replaces by a tensor."""
    SEVERAL_FROM_NONE = auto()
    """None, which the first turn replaces by a tuple of tensors."""
    LEFT = auto()
    """A tensor that is bound in a turn, and read after the loop."""


@dataclass(frozen=True)
class Scope:
    """The names of a loop: `loop` with its `body`, in the function of `code`; `bound` are the names that its header
    binds."""

    loop: ast.For | ast.While
    body: Sequence[ast.stmt]
    bound: frozenset[str]
    code: Code

    @property
    def stored(self) -> frozenset[str]:
        """The names that a turn binds."""
        return frozenset(_stored(self.body))

    @property
    def read(self) -> list[str]:
        """The tensors from before the loop that its turns only read."""
        before = self.code.flow.before.get(self.loop, {})
        header = [self.loop.iter] if isinstance(self.loop, ast.For) else []
        names = {one.id for one in _names([*header, *self.body])} - self.stored - mutated(self.body)
        around = [one for one in self.code.up(self.loop) if isinstance(one, ast.For | ast.While)]
        if around:  # the loop around has its own copies of what it does not bind
            names &= set(_stored(around[0].body))
        return sorted(name for name in names if name in before and before[name].kind is Kind.TENSOR)

    def states(self, lists: Iterable[str]) -> dict[str, Carried] | None:
        """What the loop carries, without the `lists` that it appends to; None if it carries what a graph cannot."""
        before = self.code.flow.before.get(self.loop, {})
        found: dict[str, Carried] = {}
        written = set(_written(self.body))
        for name in sorted(set(_stored(self.body)) | written):
            if name in lists or name in self.bound:
                if name in self.bound and self.is_read_later(name):
                    return None
                continue
            if name not in before:
                if not self.is_read_later(name):
                    continue
                found[name] = Carried.LEFT
            elif reads_first(self.body, name) or self.is_read_later(name):
                how = self._how(name, before[name])
                if how is None:
                    return None
                found[name] = how
        if any(how is Carried.LEFT and self._bound_kinds(name) != {Kind.TENSOR} for name, how in found.items()):
            return None
        return found

    def _how(self, name: str, value: Value) -> Carried | None:
        kinds = self._bound_kinds(name)
        if value.kind is Kind.TENSOR:
            return Carried.TENSOR
        if value.kind is Kind.MANY:
            return Carried.SEVERAL
        if value.known and value.live is None:
            several = Kind.MANY in kinds and Kind.TENSOR not in kinds
            return Carried.SEVERAL_FROM_NONE if several else Carried.FROM_NONE
        is_number = value.kind is Kind.SIZE or (isinstance(value.live, int | float) and value.live is not None)
        if is_number and kinds & {Kind.TENSOR, Kind.MANY}:
            return Carried.FROM_NUMBER
        is_index = isinstance(value.live, int) and not isinstance(value.live, bool) and value.live >= 0
        if value.kind is Kind.SIZE or is_index:
            return Carried.NUMBER
        return None

    def _bound_kinds(self, name: str) -> set[Kind]:
        stores = (node for node in _names(self.body) if node.id == name and isinstance(node.ctx, ast.Store))
        return {self.code.flow.kind(node) for node in stores}

    def is_read_later(self, name: str) -> bool:
        """Whether the name is read after the loop before it is bound again."""
        function = self.code.flow.function
        inside = {id(node) for node in ast.walk(self.loop)}
        others = [one for one in _names([function]) if one.id == name and id(one) not in inside]
        if any(isinstance(above, ast.For | ast.While) for above in self.code.up(self.loop)):
            return any(isinstance(one.ctx, ast.Load) for one in others)
        end = self.loop.end_lineno or self.loop.lineno
        for one in sorted((one for one in others if one.lineno > end), key=lambda one: one.lineno):
            statement = self.code.statement(one)
            if isinstance(one.ctx, ast.Load) or reads_first([statement], name):
                return True
            if self.code.block(statement) is self.code.block(self.loop):
                return False
        return False


def reads_first(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether the statements may read the name before they bind it."""
    for statement in body:
        if isinstance(statement, ast.AugAssign) and name in _roots([statement.target]):
            return True
        used = [one for one in _names([statement]) if one.id == name]
        if any(isinstance(one.ctx, ast.Load) for one in used):
            return True
        if used and isinstance(statement, ast.Assign | ast.AnnAssign | ast.With):
            return False
    return False


def mutated(body: Sequence[ast.stmt], tensors: Set[str] = frozenset()) -> set[str]:
    """The names whose tensors the statements write to in place. `name += …` writes to one of the `tensors`, and binds
    any other name anew."""
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.AugAssign)]
    added = {node.target.id for node in nodes if isinstance(node.target, ast.Name)}
    return set(_written(body)) | (added & tensors)


def _written(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Assign(targets=targets):
                    yield from _roots(one for one in targets if isinstance(one, ast.Subscript))
                case ast.AugAssign(target=ast.Subscript() as one):
                    yield from _roots([one])
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name.endswith("_") and name[0] != "_":
                    yield from _roots([owner])


def _roots(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """The names at the start of `name[…]`, `name.narrow(…)`, `name.T[…]`."""
    for node in nodes:
        one = node
        while not isinstance(one, ast.Name):
            match one:
                case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Call(func=inner):
                    one = inner
                case _:
                    break
        if isinstance(one, ast.Name):
            yield one.id


def _stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    inner = {
        id(name)
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
    }
    for one in _names(body):
        if isinstance(one.ctx, ast.Store) and id(one) not in inner:
            yield one.id


def _names(body: Sequence[ast.AST]) -> list[ast.Name]:
    nodes = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name))
    return [node for node in nodes if hasattr(node, "ctx")]
