"""Finds branches and loops on the values of tensors, and loops over their axes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint import _block_patch
from onnxsmith.exporter.lint._axis_loops import may_scan_nothing, over_axis
from onnxsmith.exporter.lint._block_patch import of_for
from onnxsmith.exporter.lint._branch_merging import condition, merged, where
from onnxsmith.exporter.lint._data_loops import counted_loop, while_loop
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_DATA = (Kind.TENSOR, Kind.VALUE)


class BranchOnData(Check):
    """Finds `if`, a conditional expression or an `assert` on the value of a tensor.

    The patch uses torch.where, if both sides only assign and return.
    """

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
                why="which side runs is known only when the model runs, so the graph needs both sides; a "
                "TorchScript trace would keep only the example's side",
                fix="compute both sides and choose with torch.where(condition, a, b); or use torch.cond if a side "
                "is slow to compute",
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


class LoopOnData(Check):
    """Finds `while` on the value of a tensor, and `for` whose number of turns depends on the value of a tensor.

    The patch uses torch.while_loop, if the body only assigns.
    """

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
                "the number of iterations of a loop depends on the value of a tensor",
                why="the number is known only when the model runs; a TorchScript trace would keep the example's number",
                fix="use torch.while_loop, which becomes a Loop of the graph",
            ),
            at,
            swaps={} if made is None else {node: made},
        )


def over_rows(node: ast.comprehension, code: Code) -> dict[ast.AST, New] | None:
    """Returns the patch of `torch.stack([… for row in x])` by torch.vmap, or None for other comprehensions."""
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
    """Finds a Python loop over an axis of a tensor: `for row in x`, `for i in range(x.shape[0])`.

    A trace unrolls the loop at the example's size, which fixes the axis.
    """

    nodes = (ast.For, ast.comprehension)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.For | ast.comprehension)
        if code.flow.kind(node.iter) not in (Kind.TENSOR, Kind.SIZE) or _goes_by_blocks(node.iter):
            return
        swaps = None
        if isinstance(node, ast.For) and code.torch:
            swaps = over_axis(node, code)
            if (swaps is None or may_scan_nothing(node, swaps)) and of_for(node, code):
                return  # forward/loop-over-blocks reports it
        elif isinstance(node, ast.comprehension) and code.torch:
            swaps = over_rows(node, code)
        yield Remark(
            Problem(
                "forward/loop-over-axis",
                "a Python loop goes over an axis of a tensor",
                why="torch unrolls the loop into one iteration for each row of the example, which fixes the axis",
                fix="compute on the whole tensor at once; or use torch.vmap for independent rows, or "
                "torch._higher_order_ops.scan if a row needs results of earlier rows",
            ),
            node.iter,
            swaps=swaps or {},
            freezes=True,
        )


def _goes_by_blocks(iterated: ast.expr) -> bool:
    """Whether a loop goes over a range with a step: a turn is no row of a tensor."""
    match iterated:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, step]):
            return ast.unparse(step) not in ("1", "-1")
    return False


class LoopOverBlocks(Check):
    """Finds a loop whose number of turns depends on a size: `for i in range(0, n, step)`, `for c in x.split(8, 1)`.

    A trace unrolls the loop with the example's number of turns. The patch uses torch.while_loop.
    """

    nodes = (ast.For, ast.While, ast.ListComp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        at: ast.AST
        match node:
            case ast.For():
                at, swaps = node.iter, _block_patch.of_for(node, code)
                if not swaps and code.flow.kind(node.iter) in (Kind.TENSOR, Kind.SIZE):
                    if not _goes_by_blocks(node.iter):
                        return  # forward/loop-over-axis reports it
                    swaps = {}
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
                "the number of iterations of a Python loop depends on a size",
                why="torch unrolls the loop with the example's number of iterations",
                fix="compute all blocks at once: x.unfold(dim, size, step) or a reshape puts the blocks on an "
                "axis, and torch.nn.functional.fold adds overlapping blocks; or use torch.while_loop, which "
                "becomes a Loop",
            ),
            at,
            swaps=swaps,
            freezes=True,
        )
