"""Finds state that forward keeps for the next call: `self.count += 1`, `self.buffer.copy_(…)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Weight
from onnxsmith.exporter.lint import _argument_lifting
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark


class StateWritten(Check):
    """Finds an attribute of the module that forward writes and reads. An attribute that is only written is harmless."""

    nodes = (ast.Assign, ast.AugAssign, ast.Call)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        attribute = self._attribute(node, code)
        if attribute is None:
            return
        own = code.flow.function.args.args[0].arg if code.flow.function.args.args else ""
        module = code.flow.env.get(own)
        if module is None or not isinstance(module.live, torch.nn.Module):
            return
        if attribute not in _read(code, own):
            return
        yield Remark(
            Problem(
                "forward/state",
                f"forward writes to self.{attribute}, which the next call reads",
                why="a graph has no state between calls: every call starts with the value from the export",
                fix=f"make the state an input and an output: add a last argument {attribute} to forward, return the "
                f"new value as the last result, and pass net.{attribute} in the first call",
            ),
            node,
            weight=Weight.WRONG,
            swaps=_argument_lifting.state(code, attribute),
            same=False,
        )

    def _attribute(self, node: ast.AST, code: Code) -> str | None:
        own = code.flow.function.args.args[0].arg if code.flow.function.args.args else ""
        target: ast.AST | None = None
        match node:
            case ast.Assign(targets=[one]) | ast.AugAssign(target=one):
                target = one.value if isinstance(one, ast.Subscript) else one
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as one, attr=attr)) if attr.endswith("_"):
                target = one if code.flow.kind(one) is Kind.TENSOR else None
        match target:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == own and own:
                return attribute
        return None


def _read(code: Code, own: str) -> set[str]:
    """Returns the attributes of the module that are read other than to update themselves."""
    found = set()
    for node in ast.walk(code.flow.function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Load()) if name == own:
                statement = code.statement(node)
                above = code.parents.get(node)
                if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
                    continue
                written = statement.targets if isinstance(statement, ast.Assign) else []
                if isinstance(statement, ast.AugAssign):
                    written = [statement.target]
                is_own = any(isinstance(t, ast.Attribute) and t.attr == attribute for t in written)
                in_place = (
                    isinstance(statement, ast.Expr) and isinstance(above, ast.Attribute) and above.attr.endswith("_")
                )
                if not is_own and not in_place:
                    found.add(attribute)
    return found
