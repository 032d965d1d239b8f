"""Finds the carried values of a loop: names that a turn reads before it binds them, or that are read after the loop."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from onnxsmith.exporter.lint._name_binding import names, reads_first, roots, stored
from onnxsmith.exporter.lint._values import TENSOR, Kind, Value
from onnxsmith.exporter.lint.base import Code


class Carried(Enum):
    """How a loop of the graph carries a name."""

    TENSOR = auto()
    SEVERAL = auto()
    """A tuple of tensors."""
    NUMBER = auto()
    """An integer, as a tensor of rank 0."""
    FROM_NUMBER = auto()
    """A number to which the first turn adds a tensor."""
    FROM_NONE = auto()
    """None, which the first turn replaces by a tensor."""
    SEVERAL_FROM_NONE = auto()
    """None, which the first turn replaces by a tuple of tensors."""
    FLAG = auto()
    """True or False, the same after each turn."""
    LEFT = auto()
    """A tensor that a turn binds and that is read after the loop."""


@dataclass(frozen=True)
class Scope:
    """The names of a loop. `body` are the lines of `loop`, a loop in the function of `code`. `bound` are the names that
    its header binds, `started` the tensors that the patch binds before the loop."""

    loop: ast.For | ast.While
    body: Sequence[ast.stmt]
    bound: frozenset[str]
    code: Code
    started: Collection[str] = ()

    @property
    def before(self) -> dict[str, Value]:
        """The values of the names before the loop."""
        return {**self.code.flow.before.get(self.loop, {}), **dict.fromkeys(self.started, TENSOR)}

    @property
    def known(self) -> Set[str]:
        """The names that have a value when a turn starts."""
        return self.bound | self.before.keys()

    @property
    def mappings(self) -> set[str]:
        """The names of dicts with string keys."""
        return {
            node.value.id
            for node in ast.walk(self.code.flow.function)
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        }

    def unbound(self, states: Mapping[str, Carried]) -> list[str]:
        """Returns the states that only the first turn binds."""
        return [name for name, how in states.items() if how is not Carried.LEFT and name not in self.before]

    @property
    def stored(self) -> frozenset[str]:
        """The names that a turn binds."""
        return frozenset(stored(self.body))

    @property
    def read(self) -> list[str]:
        """The tensors from before the loop that its turns only read."""
        before = self.before
        header = [self.loop.iter] if isinstance(self.loop, ast.For) else []
        read = {one.id for one in names([*header, *self.body])} - self.stored - self.bound - mutated(self.body)
        around = [one for one in self.code.up(self.loop) if isinstance(one, ast.For | ast.While)]
        if around:  # the enclosing loop copies the tensors that it does not bind
            read &= set(stored(around[0].body))
        return sorted(name for name in read if name in before and before[name].kind is Kind.TENSOR)

    def states(self, lists: Iterable[str], *, begins: bool) -> dict[str, Carried] | None:
        """Returns the carried values, without the `lists` that the loop appends to. None if a graph cannot carry one of
        them. `begins`: the first turn has lines of its own, which may bind names that later turns read."""
        before = self.before
        found: dict[str, Carried] = {}
        for name in sorted(set(stored(self.body)) | set(written(self.body))):
            if name in lists or name in self.bound:
                # the loop variable is not carried, so its last value would be lost
                if name in self.bound and self.is_read_later(name):
                    return None
                continue
            if name not in before:
                if begins and reads_first(self.body, name):
                    several = self._bound_kinds(name) == {Kind.MANY}
                    found[name] = Carried.SEVERAL_FROM_NONE if several else Carried.FROM_NONE
                elif self.is_read_later(name):
                    found[name] = Carried.LEFT
            elif reads_first(self.body, name) or self.is_read_later(name):
                how = self._how(name, before[name])
                if how is None:
                    return None
                found[name] = how if how is not Carried.FROM_NONE or reads_first(self.body, name) else Carried.LEFT
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
        if isinstance(value.live, bool):
            return Carried.FLAG if kinds == {Kind.OTHER} else None
        is_number = value.kind is Kind.SIZE or (isinstance(value.live, int | float) and value.live is not None)
        if is_number and kinds & {Kind.TENSOR, Kind.MANY}:
            return Carried.FROM_NUMBER
        is_index = isinstance(value.live, int) and value.live >= 0
        if value.kind is Kind.SIZE or is_index:
            return Carried.NUMBER
        return None

    def _bound_kinds(self, name: str) -> set[Kind]:
        stores = (node for node in names(self.body) if node.id == name and isinstance(node.ctx, ast.Store))
        return {self.code.flow.kind(node) for node in stores}

    def is_read_later(self, name: str) -> bool:
        """Whether the name is read after the loop before it is bound again."""
        function = self.code.flow.function
        inside = {id(node) for node in ast.walk(self.loop)}
        others = [one for one in names([function]) if one.id == name and id(one) not in inside and self.code.runs(one)]
        # an enclosing loop comes back to lines before this loop
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


def mutated(body: Sequence[ast.stmt], tensors: Set[str] = frozenset()) -> set[str]:
    """Returns the names whose tensors the statements write to in place. `name += …` writes to a name in `tensors`, and
    rebinds any other name."""
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.AugAssign)]
    added = {node.target.id for node in nodes if isinstance(node.target, ast.Name)}
    return set(written(body)) | (added & tensors)


def written(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yields the names whose tensors or elements the statements write to."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Assign(targets=targets):
                    parts = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
                    yield from roots(one for one in parts if isinstance(one, ast.Subscript))
                case ast.AugAssign(target=ast.Subscript() as one):
                    yield from roots([one])
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name.endswith("_") and name[0] != "_":
                    yield from roots([owner])
