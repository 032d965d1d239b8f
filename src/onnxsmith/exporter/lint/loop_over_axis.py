"""`for row in x`, `for i in range(x.shape[0])`: a Python loop over an axis of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._axis_loops import may_scan_nothing, over_axis
from onnxsmith.exporter.lint._block_patch import of_for
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark


def over_rows(node: ast.comprehension, code: Code) -> dict[ast.AST, New] | None:
    """The patch of `torch.stack([… for row in x])`, by torch.vmap; None for other comprehensions."""
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
    """A trace unrolls the loop at the example's size, which fixes the axis."""

    nodes = (ast.For, ast.comprehension)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.For | ast.comprehension)
        if code.flow.kind(node.iter) not in (Kind.TENSOR, Kind.SIZE):
            return
        swaps = None
        if isinstance(node, ast.For) and code.torch:
            swaps = over_axis(node, code)
            if (swaps is None or may_scan_nothing(node, swaps)) and of_for(node, code):
                return  # forward/loop-over-blocks says it
        elif isinstance(node, ast.comprehension) and code.torch:
            swaps = over_rows(node, code)
        yield Remark(
            Problem(
                "forward/loop-over-axis",
                "a Python loop goes over an axis of a tensor",
                why="torch unrolls the loop with one turn for each row of the example, which fixes the axis",
                fix="compute on the whole tensor at once; or use torch.vmap for independent rows, and "
                "torch._higher_order_ops.scan if a row needs results of earlier rows",
            ),
            node.iter,
            swaps=swaps or {},
            freezes=True,
        )
