"""`if`, a conditional expression or an `assert` on the value of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._branch_merging import condition, merged, where
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_DATA = (Kind.TENSOR, Kind.VALUE)


class BranchOnData(Check):
    """The patch uses torch.where, if both sides only assign and return."""

    nodes = (ast.If, ast.IfExp, ast.Assert)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.If | ast.IfExp | ast.Assert)
        if code.flow.kind(node.test) not in _DATA:
            return
        swaps: dict[ast.AST, New] = {}
        if isinstance(node, ast.Assert):
            yield Remark(
                Problem(
                    "forward/assert-on-data",
                    "an assert reads the values of a tensor",
                    why="the values are known only when the model runs, and a graph cannot raise an error",
                    fix="check the values before the model is called, and remove the assert from forward",
                ),
                node,
                swaps={node: ast.Pass()},
            )
            return
        if code.torch and isinstance(node, ast.IfExp):
            swaps[node] = where(code.torch, condition(node.test, code.torch), node.body, node.orelse)
        elif code.torch and isinstance(node, ast.If):
            swaps = _branch(node, code)
        yield Remark(
            Problem(
                "forward/branch-on-data",
                "a branch reads the value of a tensor",
                why="the side to take is known only when the model runs, so the graph has to hold both sides; a trace "
                "would keep only the example's side",
                fix="compute both sides and choose with torch.where(condition, a, b); or use torch.cond if a side is "
                "costly",
            ),
            node.test,
            swaps=swaps,
        )


def _branch(node: ast.If, code: Code) -> dict[ast.AST, New]:
    block = code.block(node)
    if node not in block:
        return {}
    rest = block[block.index(node) + 1 :]
    returns = bool(node.body) and isinstance(node.body[-1], ast.Return) and not node.orelse
    made = merged(node, rest, code.torch, lambda test: code.flow.kind(test) in _DATA)
    if made is None:
        return {}
    return {node: made, **({one: [] for one in rest} if returns else {})}
