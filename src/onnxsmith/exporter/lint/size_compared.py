"""`if x.shape[0] > 1`, where that axis is dynamic."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.exporter.lint._values import OTHER, Kind, Value
from onnxsmith.exporter.lint.base import Check, Code, Remark
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Weight


class SizeCompared(Check):
    """The graph holds for the sizes on the example's side."""

    nodes = (ast.If, ast.IfExp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.If | ast.IfExp)
        if code.flow.kind(node.test) is not Kind.SIZE:
            return
        sizes: list[Value] = [code.flow.values.get(part, OTHER) for part in ast.walk(node.test)]
        axes = [value.axis for value in sizes if value.axis is not None]
        open_ = [(name, axis) for name, axis in axes if axis in code.arguments.get(name, {})]
        if not open_:
            return
        name, axis = open_[0]
        yield Remark(
            Problem(
                "forward/size-compared",
                f"a branch asks for the size of axis {axis} of {name!r}, which is dynamic",
                why="the graph has the side that the example takes, and holds for the sizes on that side only",
                fix="give an example from the side that will be used; or write both sides as one computation",
            ),
            node.test,
            weight=Weight.NOTE,
        )
