"""`for i in range(0, n, step)`, `for c in x.split(8, 1)`: a loop whose number of turns follows from a size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint import _block_patch
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, Remark


class LoopOverBlocks(Check):
    """A trace unrolls the loop with the example's number of turns. The patch uses torch.while_loop."""

    nodes = (ast.For, ast.While, ast.ListComp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        at: ast.AST
        match node:
            case ast.For():
                at, swaps = node.iter, _block_patch.of_for(node, code)
                if not swaps and code.flow.kind(node.iter) in (Kind.TENSOR, Kind.SIZE):
                    return  # forward/loop-over-axis says it
            case ast.While():
                at, swaps = node.test, _block_patch.of_while(node, code)
            case ast.ListComp():
                at, swaps = node.generators[0].iter, _block_patch.of_comprehension(node, code)
            case _:
                return
        if swaps is None:
            return
        yield Remark(
            Problem(
                "forward/loop-over-blocks",
                "the number of turns of a Python loop follows from a size",
                why="torch unrolls the loop with the number of turns of the example",
                fix="compute all blocks at once: x.unfold(dim, size, step) or a reshape gives them as an axis, "
                "torch.nn.functional.fold adds overlapping ones; or use torch.while_loop, which becomes a Loop",
            ),
            at,
            swaps=swaps,
            freezes=True,
        )
