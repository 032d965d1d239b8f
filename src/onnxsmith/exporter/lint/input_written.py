"""Finds writes to an argument of forward: `x[...] = …`, `x += …` and `x.add_(…)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Weight
from onnxsmith.exporter.lint._flow import Flow
from onnxsmith.exporter.lint._values import OTHER, Kind, Value
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_HARMLESS = ("requires_grad_", "retain_grad_")


class InputWritten(Check):
    """Finds a write to an argument. The graph gives the same outputs, but does not change the caller's tensor."""

    nodes = (ast.Assign, ast.AugAssign, ast.Call)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        written, new = self._written(node, code)
        if written is None:
            return
        value = code.flow.values.get(written, OTHER)
        if value.kind not in (Kind.TENSOR, Kind.MANY) or not value.inputs:
            return
        name = ", ".join(sorted(value.inputs))
        yield Remark(
            Problem(
                "forward/input-written",
                f"forward writes to its argument {name}",
                why="an ONNX model cannot write to an input: after a run, the caller's tensor is unchanged",
                fix=f"write to a copy: insert {name} = {name}.clone() before this line",
            ),
            node,
            weight=Weight.NOTE,
            swaps=new,
        )

    def _written(self, node: ast.AST, code: Code) -> tuple[ast.expr | None, dict[ast.AST, New]]:
        """Returns the expression that is written to, and the patch."""
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name() as written)]):
                return written, {node: [_copied(written.id), node]}
            case ast.AugAssign(target=ast.Subscript(value=ast.Name() as written)):
                return written, {node: [_copied(written.id), node]}
            case ast.AugAssign(target=ast.Name() as written, op=op, value=value):
                name = ast.Name(written.id)
                return written, {node: ast.Assign([name], ast.BinOp(name, op, value))}
            case ast.Call(func=ast.Attribute(value=ast.Name() as written, attr=attr)) if _in_place(attr):
                above = code.statement(node)
                is_simple = isinstance(above, ast.Expr | ast.Assign | ast.Return)
                known = is_simple and _is_argument(written, code.flow)
                return written, {above: [_copied(written.id), above]} if known else {}
            case ast.Assign(targets=[ast.Subscript(value=written)]):
                return written, {}
            case ast.Call(func=ast.Attribute(value=written, attr=attr)) if _in_place(attr):
                return written, {}
        return None, {}


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in _HARMLESS


def _is_argument(node: ast.Name, flow: Flow) -> bool:
    value: Value = flow.values.get(node, OTHER)
    return value.direct == node.id


def _copied(name: str) -> ast.stmt:
    return ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name(name), "clone"), [], []))
