"""`.data`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark


class DataAttribute(Check):
    """torch.export follows `.data`; a TorchScript trace turns it into a constant."""

    nodes = (ast.Attribute,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Attribute)
        if node.attr != "data" or code.flow.kind(node.value) is not Kind.TENSOR:
            return
        stored = isinstance(node.ctx, ast.Store)
        yield Remark(
            Problem(
                "forward/data-attribute",
                ".data hides a tensor from a trace",
                why="a TorchScript trace silently turns the values after it into constants",
                fix="use .detach(), or remove .data: an export needs no gradients",
            ),
            node,
            swaps={} if stored else {node: ast.Call(ast.Attribute(node.value, "detach"), [], [])},
        )
