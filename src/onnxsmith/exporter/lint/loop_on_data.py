"""`while` on the value of a tensor, and `for` with a number of turns from a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._data_loops import counted_loop, while_loop
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark

_DATA = (Kind.TENSOR, Kind.VALUE)


class LoopOnData(Check):
    """The patch uses torch.while_loop, if the body only assigns."""

    nodes = (ast.While, ast.For)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        env = code.flow.before.get(node, {}) if isinstance(node, ast.stmt) else {}
        made = None
        if isinstance(node, ast.While) and code.flow.kind(node.test) in _DATA:
            at: ast.AST = node.test
            made = while_loop(node, code.torch, env) if code.torch else None
        elif isinstance(node, ast.For) and code.flow.kind(node.iter) is Kind.VALUE:
            at = node.iter
            made = counted_loop(node, code.torch, env) if code.torch else None
        else:
            return
        yield Remark(
            Problem(
                "forward/loop-on-data",
                "the number of turns of a loop depends on the value of a tensor",
                why="the number is known only when the model runs; a trace would keep the example's number of turns",
                fix="use torch.while_loop, which becomes a Loop of the graph",
            ),
            at,
            swaps={} if made is None else {node: made},
        )
