"""`if x.shape[0] > 1` on a dynamic axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.diagnosis import Weight
from onnxsmith.exporter.lint._size_arithmetic import computed
from onnxsmith.exporter.lint._values import OTHER, Kind, Value
from onnxsmith.exporter.lint.base import Check, Code, New, Remark


class SizeCompared(Check):
    """The graph is valid only for sizes that take the example's side. The patch computes a number that both sides
    choose from the sizes; a branch on sizes inside the module is reported only if there is such a patch."""

    nodes = (ast.If, ast.IfExp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.If | ast.IfExp)
        if code.flow.kind(node.test) is not Kind.SIZE:
            return
        new = computed(node, code)
        swaps: dict[ast.AST, New] = {} if new is None else {node: new}
        sizes: list[Value] = [code.flow.values.get(part, OTHER) for part in ast.walk(node.test)]
        axes = [value.axis for value in sizes if value.axis is not None]
        dynamic = [(name, axis) for name, axis in axes if axis in code.arguments.get(name, {})]
        if not dynamic and not swaps:
            return
        said = "a branch depends on sizes, which may be dynamic"
        if dynamic:
            name, axis = dynamic[0]
            said = f"a branch reads the size of axis {axis} of {name!r}, which is dynamic"
        yield Remark(
            Problem(
                "forward/size-compared",
                said,
                why="the graph holds only the example's side, and is valid only for sizes that take that side",
                fix="give an example that takes the side you need; or write both sides as one computation",
            ),
            node.test,
            weight=Weight.NOTE,
            swaps=swaps,
            freezes=not dynamic,
        )
