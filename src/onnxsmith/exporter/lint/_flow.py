"""Reads one function of the user: its statements in execution order.

An `if` on a known value is decided, and the branch that is not taken is not read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from onnxsmith.exporter.lint._expressions import UNDECIDED, Expressions
from onnxsmith.exporter.lint._values import OTHER, Value, join


@dataclass
class Flow(Expressions):
    """Reads the statements of one function. `reached` are the statements that were reached, `returned` the values that
    it returns, `before` the values of the names when each loop was first reached."""

    reached: dict[ast.stmt, None] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    before: dict[ast.stmt, dict[str, Value]] = field(default_factory=dict)

    def read(self) -> Value:
        """Reads the whole function and returns the value of its result."""
        self._block(self.function.body)
        return join(*self.returned) if self.returned else OTHER

    def _block(self, body: list[ast.stmt]) -> bool:
        """Reads statements. Returns whether the block certainly ends with return or raise."""
        for statement in body:
            self.reached[statement] = None
            if self._statement(statement):
                return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Return() | ast.Raise():
                if isinstance(node, ast.Return) and node.value is not None:
                    self.returned.append(self.value(node.value))
                return True
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.bind(target, value, node.value)
            case ast.AnnAssign() if node.value is not None:
                self.bind(node.target, self.value(node.value), node.value)
            case ast.AugAssign():
                before = self.value(node.target)
                value = join(before, self.value(node.value))
                self.bind(node.target, Value(value.kind, before.inputs), None)
            case ast.If():
                return self._branches(node)
            case ast.For():
                self.before.setdefault(node, dict(self.env))
                self.value(node.iter)
                self.bind(node.target, self.each_of(node.iter), None)
                self._loop(node.body, node.orelse)
            case ast.While():
                self.before.setdefault(node, dict(self.env))
                self.value(node.test)
                self._loop(node.body, node.orelse)
                self.value(node.test)
            case ast.With():
                for item in node.items:
                    value = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, value, None)
                return self._block(node.body)
            case ast.Try():
                for body in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                    self._block(body)
            case ast.FunctionDef() | ast.ClassDef():
                self.env[node.name] = OTHER
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)
        return False

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        for _ in range(2):  # the second pass sees names that the first pass bound
            before = dict(self.env)
            self._block(body)
            self.env = {name: join(before.get(name, value), value) for name, value in self.env.items()}
        self._block(orelse)

    def _branches(self, node: ast.If) -> bool:
        self.value(node.test)
        decided = self.decide(node.test)
        if decided is not UNDECIDED:
            return self._block(node.body if decided else node.orelse)
        before = dict(self.env)
        left = self._block(node.body)
        after, self.env = self.env, dict(before)
        left_too = self._block(node.orelse)
        if left_too:
            self.env = after
        elif not left:
            names = self.env.keys() | after.keys()
            self.env = {n: join(*(side[n] for side in (self.env, after) if n in side)) for n in names}
        return left and left_too
