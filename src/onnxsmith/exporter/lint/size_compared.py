"""`if x.shape[0] > 1` on a dynamic axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.exporter.lint._values import OTHER, Kind, Value
from onnxsmith.exporter.lint.base import Check, Code, Remark
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Weight


class SizeCompared(Check):
    """The graph is valid only for sizes that take the example's side."""

    nodes = (ast.If, ast.IfExp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.If | ast.IfExp)
        if code.flow.kind(node.test) is not Kind.SIZE:
            return
        sizes: list[Value] = [code.flow.values.get(part, OTHER) for part in ast.walk(node.test)]
        axes = [value.axis for value in sizes if value.axis is not None]
        dynamic = [(name, axis) for name, axis in axes if axis in code.arguments.get(name, {})]
        if not dynamic:
            return
        name, axis = dynamic[0]
        yield Remark(
            Problem(
                "forward/size-compared",
                f"a branch reads the size of axis {axis} of {name!r}, which is dynamic",
                why="the graph holds only the example's side, and is valid only for sizes that take that side",
                fix="give an example that takes the side you need; or write both sides as one computation",
            ),
            node.test,
            weight=Weight.NOTE,
        )
