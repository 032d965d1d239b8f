"""Finds nodes of written-out activations, which a runtime or a rule at a newer opset would fuse."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.optimizer.rules import _formula
from onnxsmith.optimizer.rules._patterns import read_elsewhere

_WHOLE = {(1, 0): 0.5, (1, 1): 0.5}
_SLOPE, _CUBIC = math.sqrt(2 / math.pi), 0.044715
GELU = {
    "none": _formula.Formula(("Erf",), {(1, 0): 1 / math.sqrt(2)}, _WHOLE),
    "tanh": _formula.Formula(("Tanh",), {(1, 0): _SLOPE, (3, 0): _SLOPE * _CUBIC}, _WHOLE),
}
"""The formula of Gelu by the value of `approximate`."""
SWISH = _formula.Formula(("Sigmoid",), None, {(1, 1): 1.0})
"""The formula of Swish. The gate may have any slope and offset."""
_ON_THE_WAY = ("Add", "Sub", "Mul", "Div", "Pow", "Neg", "Erf", "Tanh", "Sigmoid")
_MOST = 12
"""The most nodes after a product that are examined. A choice: no common form has more."""


def is_part(node: ir.Node) -> bool:
    """Whether a node belongs to a written-out Gelu or Swish whose intermediate results have no other readers.

    A rewrite that moves such a product elsewhere saves a node. But then no runtime recognises the activation, which it
    would compute as one operator, and neither does a rule after a conversion to a newer opset."""
    for end in _after(node):
        for formula in (*GELU.values(), SWISH):
            found = _formula.find(end, formula)
            if found is not None and node in found.nodes and read_elsewhere(found.nodes) is None:
                return True
    return False


def _after(node: ir.Node) -> Iterator[ir.Node]:
    """Yields the products at which an activation with this node may end, the node itself first."""
    seen = {node: None}
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if one.op_type in ("Mul", "Div"):
            yield one
        for reader in one.outputs[0].consumers():
            beside = reader.graph is node.graph and reader.op_type in _ON_THE_WAY and not reader.domain
            if beside and reader not in seen and len(seen) < _MOST:
                seen[reader] = None
                waiting.append(reader)
