"""`for row in x`, `for i in range(x.shape[0])`: a Python loop over an axis of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.exporter.lint._axis_loops import over_axis
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark
from onnxsmith.problem import Problem


def over_rows(node: ast.comprehension, code: Code) -> dict[ast.AST, New] | None:
    """`torch.stack([… for row in x])` as torch.vmap; nothing for other comprehensions."""
    whole = code.parents.get(node)
    stack = code.parents.get(whole) if whole is not None else None
    match whole, stack:
        case (
            ast.ListComp(elt=elt, generators=[ast.comprehension(target=ast.Name(id=row), ifs=[])]),
            ast.Call(func=ast.Attribute(attr="stack"), args=[_], keywords=[]),
        ) if code.flow.kind(node.iter) is Kind.TENSOR:
            turn = ast.Lambda(ast.arguments([], [ast.arg(row)], None, [], [], None, []), elt)
            vmap = ast.Call(ast.Attribute(ast.Name(code.torch), "vmap"), [turn], [])
            return {stack: ast.Call(vmap, [node.iter], [])}
    return None


class LoopOverAxis(Check):
    """Unrolled at the example's size, which matters where the axis is dynamic."""

    nodes = (ast.For, ast.comprehension)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.For | ast.comprehension)
        if code.flow.kind(node.iter) not in (Kind.TENSOR, Kind.SIZE):
            return
        swaps = None
        if isinstance(node, ast.For) and code.torch:
            swaps = over_axis(node, code.torch, code.flow.before.get(node, {}), code.flow.function)
        elif isinstance(node, ast.comprehension) and code.torch:
            swaps = over_rows(node, code)
        yield Remark(
            Problem(
                "forward/loop-over-axis",
                "a Python loop goes over an axis of a tensor",
                why="torch unrolls it, with as many turns as the example has rows, and the axis is fixed",
                fix="compute on the whole tensor at once; or torch.vmap for rows that do not need each other, "
                "torch._higher_order_ops.scan for those that do",
            ),
            node.iter,
            swaps=swaps or {},
            freezes=True,
        )
