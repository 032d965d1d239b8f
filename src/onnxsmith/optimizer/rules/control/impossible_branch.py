"""Finds a condition whose value is known, because later operators would fail otherwise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import Uniform
from onnxsmith.graph.shapes.value_analysis import Analysis
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SAME_RANK = (
    *("Abs", "Cast", "CastLike", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "LeakyRelu", "Log", "Neg", "Not", "Reciprocal", "Relu", "Sigmoid", "Sign", "Softmax", "Sqrt"),
    *("Swish", "Tanh", "Transpose", "Slice", "Pad", "Tile"),
)


def _axes(node: ir.Node) -> int | None:
    """Returns the number of axes that a Squeeze removes or an Unsqueeze adds."""
    given = node.attributes.get("axes")
    if given is not None:
        return None if given.is_ref() else len(given.as_ints())
    array = facts.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None else int(array.size)


def _moved(walk: _Ranks, node: ir.Node) -> int | None:
    """Returns the rank after a Squeeze or Unsqueeze."""
    before, count = walk.first(node), _axes(node)
    if before is None or count is None:
        return None
    return before + (count if node.op_type == "Unsqueeze" else -count)


def _length(walk: _Numbers, node: ir.Node) -> int | None:
    """Returns the rank of a value as the size of its shape."""
    shape = node.inputs[0].producer() if node.inputs[0] is not None else None
    if shape is None or shape.op_type != "Shape" or shape.domain or shape.attributes or node.attributes:
        return None
    return walk.ranks.of(shape.inputs[0])


class _Numbers(Uniform):
    rules: ClassVar = {**Uniform.rules, "Shape": _length, "Size": _length}

    def __init__(self, ranks: _Ranks, condition: ir.Value, *, holds: bool) -> None:
        super().__init__(ranks)
        self.ranks = ranks
        self._facts[condition] = holds


class _Ranks(Analysis[int]):
    """Finds the ranks of values if `condition` has the value `holds`."""

    rules: ClassVar = {**dict.fromkeys(_SAME_RANK, Analysis.first), "Squeeze": _moved, "Unsqueeze": _moved}

    def __init__(self, condition: ir.Value, *, holds: bool) -> None:
        super().__init__()
        self._numbers = _Numbers(self, condition, holds=holds)

    def fact(self, value: ir.Value) -> int | None:
        dims = facts.dims(value)
        return len(dims) if dims is not None else self.computed(value)

    def branches(self, node: ir.Node) -> list[ir.Graph]:
        """Returns the branch that the condition chooses, or both branches if the condition is unknown."""
        holds = self._numbers.first(node)
        if holds is None:
            return super().branches(node)
        branch = node.attributes["then_branch" if holds else "else_branch"]
        return [] if branch.is_ref() else [branch.as_graph()]


def _fails(node: ir.Node, ranks: _Ranks) -> bool:
    """Whether an operator must fail because its input has the wrong rank."""
    if node.domain:
        return False
    if node.op_type in ("LSTM", "GRU", "RNN"):
        wanted: int | None = 3
    elif node.op_type in ("Conv", "ConvTranspose"):
        wanted = ranks.ask(node.inputs[1])
    elif node.op_type == "Transpose" and "perm" in node.attributes and not node.attributes["perm"].is_ref():
        wanted = len(node.attributes["perm"].as_ints())
    else:
        wanted = 2 if node.op_type == "Gemm" else None
    found = ranks.ask(node.inputs[0]) if wanted is not None else None
    return found is not None and found != wanted


_MOST = 64
"""Limits the operators after the If that are examined. A choice that bounds the cost."""


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
        cases = {holds: _Ranks(condition, holds=holds) for holds in (True, False)}
        if not any(_differ(value, cases) for value in node.outputs):
            return None
        failing = [holds for holds, ranks in cases.items() if any(_fails(one, ranks) for one in _after(node))]
        if not failing:
            return None
        if len(failing) > 1:
            return NoMatch("neither branch leads to a result", condition)
        dims = facts.dims(condition)
        shape = [dim for dim in dims or () if isinstance(dim, int)]
        if maker.graph is not node.graph or condition.is_graph_output() or dims is None or len(shape) < len(dims):
            return NoMatch(
                ("the condition is computed or read outside the graph that contains the If, or its shape is not known"),
                condition,
            )
        return Match(node, (maker,), {"shape": shape, "holds": not failing[0]}, before=maker)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        condition = match.node.inputs[0]
        assert condition is not None
        array = np.full(match.found["shape"], match.found["holds"], np.bool_)
        return {condition: tape.initializer(ir.tensor(array), name=f"{condition.name}_folded")}


def _differ(value: ir.Value, cases: dict[bool, _Ranks]) -> bool:
    found = [ranks.ask(value) for ranks in cases.values()]
    return None not in found and found[0] != found[1]


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
