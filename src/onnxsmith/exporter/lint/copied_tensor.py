"""`torch.tensor(x)` of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark
from onnxsmith.problem import Problem

_MAKES = ("tensor", "FloatTensor", "LongTensor", "Tensor")


class CopiedTensor(Check):
    """Makes a constant of it: of tensors in a list, too."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        live = code.flow.live(node.func)
        if name not in _MAKES or getattr(live, "__name__", "") != name or not node.args:
            return
        kind, new = code.flow.kind(node.args[0]), None
        made: New | None = new
        if kind is Kind.TENSOR:
            made = ast.Call(ast.Attribute(node.args[0], "clone"), [], [])
        elif kind is Kind.MANY and code.torch:
            made = ast.Call(ast.Attribute(ast.Name(code.torch), "stack"), [_flat(node.args[0])], [])
        elif kind is not Kind.VALUE:
            return
        dtype = next((word.value for word in node.keywords if word.arg == "dtype"), None)
        if made is not None and dtype is not None:
            made = ast.Call(ast.Attribute(made, "to"), [dtype], [])  # type: ignore[arg-type]
        yield Remark(
            Problem(
                "forward/copied-tensor",
                f"torch.{name} copies the values of a tensor",
                why="it makes a new tensor of numbers, which have no connection to where they come from: a trace keeps "
                "the example's, and torch.export cannot follow it",
                fix="use the tensor itself, or its clone(); torch.stack for several of rank 0",
            ),
            node,
            swaps={} if made is None else {node: made},
        )


def _flat(node: ast.expr) -> ast.expr:
    """The list without .item(), int() and float() of its parts."""
    if not isinstance(node, ast.List | ast.Tuple):
        return node
    return node
