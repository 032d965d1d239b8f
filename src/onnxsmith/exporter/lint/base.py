"""The base class of checks. Each check finds one kind of code in forward that prevents an export or changes its
results."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import ClassVar

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Weight
from onnxsmith.exporter.lint._expressions import UNDECIDED
from onnxsmith.exporter.lint._flow import Flow

New = ast.AST | list[ast.stmt]


@dataclass(frozen=True)
class Remark:
    """A finding of a check at `node`.

    `swaps` maps old nodes to new nodes, and a statement to a list of statements; new nodes may contain old nodes.
    `same`: the new code computes the same for every input that the old code accepts. `freezes`: the finding counts only
    if a dynamic axis becomes a constant at that line, or at any line if `anywhere` is True. `axes` (input, axis) are
    the dynamic axes that the finding may be about, as far as the check knows them.
    """

    problem: Problem
    node: ast.AST
    weight: Weight = Weight.STOPS
    swaps: Mapping[ast.AST, New] = field(default_factory=dict)
    rung: str = "recompose"
    same: bool = True
    freezes: bool = False
    anywhere: bool = False
    axes: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Code:
    """One function of the user: the function, its source `file`, and its `flow`.

    `parents` maps a node to its parent. `is_root`: the function is the module's own forward. Only then does `arguments`
    have its tensor arguments with their sizes on the dynamic axes: {"x": {0: 4}}. `flows` are all readings of the
    function, one for each call of it.
    """

    function: FunctionType
    file: str
    flow: Flow
    parents: Mapping[ast.AST, ast.AST]
    arguments: Mapping[str, Mapping[int, int]]
    is_root: bool
    is_stateful: frozenset[str] = frozenset()
    flows: Sequence[Flow] = ()

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the ancestors of the node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """Returns the innermost statement that contains the node."""
        return node if isinstance(node, ast.stmt) else next(n for n in self.up(node) if isinstance(n, ast.stmt))

    def in_test(self, node: ast.AST) -> bool:
        """Whether the node is in the test of a branch, an assert or a loop, which other checks report."""
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

    def decided(self, test: ast.expr) -> bool | None:
        """Returns whether a test on options is true in every call of the function, or None if this is unknown or
        differs."""
        found = {flow.decide(test) for flow in self.flows or (self.flow,) if test in flow.values}
        only = found.pop() if len(found) == 1 else UNDECIDED
        return None if only is UNDECIDED else bool(only)

    def runs(self, node: ast.AST) -> bool:
        """Whether the node runs in every call of the function, as far as branches on options tell."""
        below = node
        for above in self.up(node):
            if isinstance(above, ast.If) and below is not above.test:
                decided = self.decided(above.test)
                if decided is not None and below not in (above.body if decided else above.orelse):
                    return False
            below = above
        return True

    def number(self, node: ast.expr) -> int | None:
        """Returns the integer that an expression is in every call of the function, if it is known."""
        try:
            return operator.index(ast.literal_eval(node))
        except (ValueError, TypeError):
            found = {flow.live(node) for flow in self.flows or (self.flow,) if isinstance(flow.live(node), int)}
            return found.pop() if len(found) == 1 else None

    @property
    def torch(self) -> str:
        """The name of torch in the file. Empty if the file does not import torch."""
        return next((name for name, thing in self.flow.scope.items() if getattr(thing, "__name__", "") == "torch"), "")

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Returns the block of statements that contains the statement."""
        above = self.parents[statement]
        for name in ("body", "orelse", "finalbody"):
            found = getattr(above, name, None)
            if isinstance(found, list) and statement in found:
                return found
        return [statement]


class Check(ABC):
    """Finds one kind of problem. Stateless."""

    nodes: ClassVar[tuple[type[ast.AST], ...]]
    """Names the node types that the check examines."""

    @abstractmethod
    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        """Examines one node that was reached."""
