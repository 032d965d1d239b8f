"""`x + self.table` with a table that has the example's length."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark


class TableLength(Check):
    """A parameter or buffer in arithmetic with a tensor that fits only one size of a dynamic axis."""

    nodes = (ast.BinOp,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.BinOp)
        for table, other in ((node.left, node.right), (node.right, node.left)):
            live = code.flow.live(table)
            if not isinstance(live, torch.Tensor) or code.flow.kind(other) is not Kind.TENSOR:
                continue
            for name, sizes in code.arguments.items():
                for axis, size in sizes.items():
                    places = [d for d in range(live.dim()) if live.shape[d] == size]
                    if size > 1 and places and isinstance(other, ast.Name):
                        yield self._remark(node, table, other, name, axis, places[0] - live.dim(), size)
                        return

    def _remark(
        self, node: ast.BinOp, table: ast.expr, other: ast.Name, name: str, axis: int, place: int, size: int
    ) -> Remark:
        text = ast.unparse(table)
        length = ast.Subscript(ast.Attribute(ast.Name(other.id), "shape"), ast.Constant(place))
        cut = ast.Slice(None, length, None)
        rest: list[ast.expr] = [ast.Slice(None, None, None)] * (-place - 1)
        index: ast.expr = ast.Tuple([ast.Constant(...), cut, *rest]) if place else cut
        return Remark(
            Problem(
                "forward/table-length",
                f"{text} has the example's length: {size}, axis {axis} of {name!r}",
                why="the table fits that one size only, which fixes the axis",
                fix=f"make it as long as the longest input, and slice it: {ast.unparse(ast.Subscript(table, index))}",
            ),
            node,
            swaps={table: ast.Subscript(table, index)},
            freezes=True,
        )
