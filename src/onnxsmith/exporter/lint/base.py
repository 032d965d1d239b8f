"""What a check is: something in the source of forward that stands between the module and a graph."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import ClassVar

from onnxsmith.exporter.lint._flow import Flow
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Weight

New = ast.AST | list[ast.stmt]


@dataclass(frozen=True)
class Remark:
    """What a check has to say about `node`.

    `swaps` is old node → what to write in its place, statements for a statement; what is written for one node may hold
    others. `same` says that this computes the same, for every input that the old code takes. `freezes` says that it
    matters only where an axis is dynamic and becomes a constant at that line, or, with `anywhere`, at any.
    """

    problem: Problem
    node: ast.AST
    weight: Weight = Weight.STOPS
    swaps: Mapping[ast.AST, New] = field(default_factory=dict)
    rung: str = "recompose"
    same: bool = True
    freezes: bool = False
    anywhere: bool = False


@dataclass(frozen=True)
class Code:
    """One function of the user's, read: itself, its source `file`, the `flow` through it, and who holds what in it.

    `parents` leads from a node to the one that holds it. `arguments` are the tensor arguments of forward where this is
    the module's own forward, with their sizes on the dynamic axes: {"x": {0: 4}}; `is_root` says so.
    """

    function: FunctionType
    file: str
    flow: Flow
    parents: Mapping[ast.AST, ast.AST]
    arguments: Mapping[str, Mapping[int, int]]
    is_root: bool
    is_stateful: frozenset[str] = frozenset()

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold it, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds it."""
        return node if isinstance(node, ast.stmt) else next(n for n in self.up(node) if isinstance(n, ast.stmt))

    def in_test(self, node: ast.AST) -> bool:
        """Whether it decides a branch or the turns of a loop, about which other checks speak."""
        below = node
        for above in self.up(node):
            if isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert) and above.test is below:
                return True
            if isinstance(above, ast.For) and above.iter is below:
                return True
            if isinstance(above, ast.stmt):
                return False
            below = above
        return False

    @property
    def torch(self) -> str:
        """What the file calls torch; empty when it does not."""
        return next((name for name, thing in self.flow.scope.items() if getattr(thing, "__name__", "") == "torch"), "")

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which it stands."""
        above = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            found = getattr(above, name, None)
            if isinstance(found, list) and statement in found:
                return found
        return [statement]


class Check(ABC):
    """One kind of mistake; stateless."""

    nodes: ClassVar[tuple[type[ast.AST], ...]]
    """The nodes that it looks at."""

    @abstractmethod
    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        """What is wrong with this one, which was reached."""
