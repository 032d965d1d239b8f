"""Finds a condition whose value is known, because later operators would fail otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_SAME_RANK = (
    *("Abs", "Cast", "CastLike", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "LeakyRelu", "Log", "Neg", "Not", "Pad", "Reciprocal", "Relu", "Sigmoid", "Sign", "Slice", "Softmax"),
    *("Sqrt", "Swish", "Tanh", "Tile", "Transpose"),
)
_SAME_NUMBER = ("Identity", "Reshape", "Squeeze", "Unsqueeze")
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": lambda a, b: a == b,
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "And": lambda a, b: bool(a and b),
    "Or": lambda a, b: bool(a or b),
}
_DEEPEST = 24
"""Limits the operators that are followed back. A choice that bounds the cost."""


class _Supposed:
    """Infers the ranks and single numbers that follow if `condition` has the value `holds`."""

    def __init__(self, condition: ir.Value, *, holds: bool) -> None:
        self._numbers: dict[ir.Value, int | bool | None] = {condition: holds}
        self._ranks: dict[ir.Value, int | None] = {}

    def rank(self, value: ir.Value | None, depth: int = _DEEPEST) -> int | None:
        """Returns the rank of a value, or None."""
        if value is None:
            return None
        if value not in self._ranks:
            dims = facts.dims(value)
            self._ranks[value] = len(dims) if dims is not None else None
            if dims is None and depth > 0:
                self._ranks[value] = self._rank(value, value.producer(), depth - 1)
        return self._ranks[value]

    def _rank(self, value: ir.Value, node: ir.Node | None, depth: int) -> int | None:
        if node is None or node.domain:
            return None
        if node.op_type == "If":
            holds = self.number(node.inputs[0], depth)
            if holds is None:
                return None
            branch = node.attributes["then_branch" if holds else "else_branch"]
            return None if branch.is_ref() else self.rank(branch.as_graph().outputs[value.index() or 0], depth)
        before = self.rank(node.inputs[0], depth) if node.inputs else None
        if before is None or node.op_type in _SAME_RANK:
            return before
        if node.op_type in ("Squeeze", "Unsqueeze"):
            count = _axes(node)
            return None if count is None else before + (count if node.op_type == "Unsqueeze" else -count)
        return None

    def number(self, value: ir.Value | None, depth: int = _DEEPEST) -> int | bool | None:
        """Returns the integer or Boolean of a value with one element, or None."""
        if value is None:
            return None
        if value not in self._numbers:
            array = facts.constant(value)
            known = array is not None and array.size == 1 and array.dtype.kind in "iub"
            self._numbers[value] = array.item() if array is not None and known else None
            node = value.producer()
            if array is None and depth > 0 and node is not None and not node.domain:
                self._numbers[value] = self._number(node, depth - 1)
        return self._numbers[value]

    def _number(self, node: ir.Node, depth: int) -> int | bool | None:
        if node.op_type in _SAME_NUMBER:
            return self.number(node.inputs[0], depth)
        if node.op_type == "Not":
            inner = self.number(node.inputs[0], depth)
            return None if inner is None else not inner
        if node.op_type in _COMPARED:
            a, b = (self.number(value, depth) for value in node.inputs[:2])
            return None if a is None or b is None else _COMPARED[node.op_type](a, b)
        shape = node.inputs[0].producer() if node.op_type in ("Size", "Shape") and node.inputs[0] is not None else None
        if shape is None or shape.op_type != "Shape" or shape.domain or shape.attributes or node.attributes:
            return None
        return self.rank(shape.inputs[0], depth)


def _axes(node: ir.Node) -> int | None:
    """Returns the number of axes that a Squeeze removes or an Unsqueeze adds."""
    given = node.attributes.get("axes")
    if given is not None:
        return None if given.is_ref() else len(given.as_ints())
    array = facts.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None else int(array.size)


def _fails(node: ir.Node, supposed: _Supposed) -> bool:
    """Whether an operator must fail because its input has the wrong rank."""
    if node.domain:
        return False
    if node.op_type in ("LSTM", "GRU", "RNN"):
        wanted: int | None = 3
    elif node.op_type in ("Conv", "ConvTranspose"):
        wanted = supposed.rank(node.inputs[1])
    elif node.op_type == "Transpose" and "perm" in node.attributes and not node.attributes["perm"].is_ref():
        wanted = len(node.attributes["perm"].as_ints())
    else:
        wanted = 2 if node.op_type == "Gemm" else None
    found = supposed.rank(node.inputs[0]) if wanted is not None else None
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
        cases = {holds: _Supposed(condition, holds=holds) for holds in (True, False)}
        if not any(_differ(value, cases) for value in node.outputs):
            return None
        failing = [holds for holds, supposed in cases.items() if any(_fails(one, supposed) for one in _after(node))]
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


def _differ(value: ir.Value, cases: dict[bool, _Supposed]) -> bool:
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
