"""`torch.tensor(x)` of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_MAKES = ("tensor", "FloatTensor", "LongTensor", "Tensor")


class CopiedTensor(Check):
    """The copy becomes a constant of a trace, also for tensors in a list."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        live = code.flow.live(node.func)
        if name not in _MAKES or getattr(live, "__name__", "") != name or not node.args:
            return
        kind = code.flow.kind(node.args[0])
        made: New | None = None
        if kind is Kind.TENSOR:
            made = ast.Call(ast.Attribute(node.args[0], "clone"), [], [])
        elif kind is Kind.MANY and code.torch:
            made = ast.Call(ast.Attribute(ast.Name(code.torch), "stack"), [node.args[0]], [])
        elif kind is not Kind.VALUE:
            return
        dtype = next((word.value for word in node.keywords if word.arg == "dtype"), None)
        if made is not None and dtype is not None:
            made = ast.Call(ast.Attribute(made, "to"), [dtype], [])  # type: ignore[arg-type]
        yield Remark(
            Problem(
                "forward/copied-tensor",
                f"torch.{name} copies the values of a tensor",
                why="the new tensor has no connection to the old one: a trace keeps the example's values, and "
                "torch.export cannot follow it",
                fix="use the tensor itself, or its clone(); for several tensors of rank 0 use torch.stack",
            ),
            node,
            swaps={} if made is None else {node: made},
        )
