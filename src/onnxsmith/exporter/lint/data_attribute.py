"""`.data`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark
from onnxsmith.problem import Problem


class DataAttribute(Check):
    """torch.export follows it; a TorchScript trace makes a constant of it."""

    nodes = (ast.Attribute,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Attribute)
        if node.attr != "data" or code.flow.kind(node.value) is not Kind.TENSOR:
            return
        stored = isinstance(node.ctx, ast.Store)
        yield Remark(
            Problem(
                "forward/data-attribute",
                ".data takes a tensor out of what torch follows",
                why="a TorchScript trace makes a constant of what comes behind it, in silence",
                fix="use .detach(), or nothing: an export needs no gradients",
            ),
            node,
            swaps={} if stored else {node: ast.Call(ast.Attribute(node.value, "detach"), [], [])},
        )
