"""A condition whose value is known, because later operators would fail otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._ranks import Supposed

_MOST = 64
"""The most operators after the If that are examined. A choice that bounds the cost."""


class ImpossibleBranch(Rule):
    """An If whose branches have results of different rank decides whether the operators after it can run: an LSTM needs
    three axes, a Conv as many as its weights have, a Gemm two. If such an operator refuses the rank of one branch,
    every run that succeeds takes the other branch. So the condition becomes a constant, and fold/branch removes the If.
    TorchScript writes such Ifs for `squeeze(-1)`, which keeps a dimension that is not 1, and for layers that accept
    batches or single examples; later conditions on the rank then become constant, too.

    Refused:
    1. Both branches lead to a failure: the model never has a result.
    2. The condition is a graph output, or belongs to another graph than the If.

    Only operators in the same graph that always run are examined. An If whose branches are not known to have different
    ranks is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,3,T] x) => (float[3,2] y) <int64[1] one = {1}, int64[1] last = {-1}, int64[1] end = {2}> {
            s = Shape(x)
            d = Gather(s, end)
            c = Equal(d, one)
            a = If (c) <then_branch = t () => (float[2,n] p) { p = Squeeze(x, last) },
                        else_branch = e () => (float[2,3,m] q) { q = Identity(x) }>
            r = Relu(a)
            y = Transpose <perm = [1, 0]> (r)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,3,T] x) => (float[3,2] y) <bool[1] c = {1}, int64[1] last = {-1}> {
            a = If (c) <then_branch = t () => (float[2,n] p) { p = Squeeze(x, last) },
                        else_branch = e () => (float[2,3,m] q) { q = Identity(x) }>
            r = Relu(a)
            y = Transpose <perm = [1, 0]> (r)
        }
    """

    anchor = ("If",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        condition = node.inputs[0]
        maker = condition.producer() if condition is not None else None
        if condition is None or maker is None or facts.is_constant(condition):
            return None
        from onnxsmith.optimizer.rules._ranks import Supposed, fails

        cases = {holds: Supposed(condition, holds=holds) for holds in (True, False)}
        if not any(_differ(value, cases) for value in node.outputs):
            return None
        failing = [holds for holds, supposed in cases.items() if any(fails(one, supposed) for one in _after(node))]
        if not failing:
            return None
        if len(failing) > 1:
            return NoMatch("neither branch leads to a result", condition)
        dims = facts.dims(condition)
        shape = [dim for dim in dims or () if isinstance(dim, int)]
        if maker.graph is not node.graph or condition.is_graph_output() or dims is None or len(shape) < len(dims):
            return NoMatch("the condition is read outside of the graph where the If is", condition)
        return Match(node, (maker,), {"shape": shape, "holds": not failing[0]}, before=maker)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        condition = match.node.inputs[0]
        assert condition is not None
        array = np.full(match.found["shape"], match.found["holds"], np.bool_)
        return {condition: tape.initializer(ir.tensor(array), name=f"{condition.name}_folded")}


def _differ(value: ir.Value, cases: dict[bool, Supposed]) -> bool:
    ranks = [supposed.rank(value) for supposed in cases.values()]
    return None not in ranks and ranks[0] != ranks[1]


def _after(node: ir.Node) -> list[ir.Node]:
    """Returns operators of the same graph that depend on the node and run whenever it runs, the nearest first."""
    found: dict[ir.Node, None] = {node: None}
    queue = [node]
    while queue and len(found) < _MOST:
        for value in queue.pop(0).outputs:
            for reader in value.consumers():
                if reader.graph is node.graph and reader not in found:
                    found[reader] = None
                    queue.append(reader)
    return list(found)
