"""The base class of checks: each finds one kind of code in forward that prevents an export, or changes its results."""

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
    """The finding of a check at `node`.

    `swaps` maps old nodes to new ones, a statement to a list of statements; new nodes may hold old nodes. `same`: the
    new code computes the same for every input that the old code accepts. `freezes`: the finding counts only if a
    dynamic axis becomes a constant at that line, or at any line if `anywhere` is True.
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
    """One function of the user: the function, its source `file`, and its `flow`.

    `parents` maps a node to its parent. `is_root`: the function is the module's own forward. `arguments` are then its
    tensor arguments, with their sizes on the dynamic axes: {"x": {0: 4}}.
    """

    function: FunctionType
    file: str
    flow: Flow
    parents: Mapping[ast.AST, ast.AST]
    arguments: Mapping[str, Mapping[int, int]]
    is_root: bool
    is_stateful: frozenset[str] = frozenset()

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """The ancestors of the node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that contains the node."""
        return node if isinstance(node, ast.stmt) else next(n for n in self.up(node) if isinstance(n, ast.stmt))

    def in_test(self, node: ast.AST) -> bool:
        """Whether the node is the test of a branch, an assert or a loop, which other checks report."""
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
        """The name of torch in the file; empty if the file does not import it."""
        return next((name for name, thing in self.flow.scope.items() if getattr(thing, "__name__", "") == "torch"), "")

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The block of statements that contains the statement."""
        above = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            found = getattr(above, name, None)
            if isinstance(found, list) and statement in found:
                return found
        return [statement]


class Check(ABC):
    """One kind of finding; stateless."""

    nodes: ClassVar[tuple[type[ast.AST], ...]]
    """The node types that the check examines."""

    @abstractmethod
    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        """Examines one node that was reached."""
