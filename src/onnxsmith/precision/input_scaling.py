"""Finds where a model scales its inputs by numbers that differ from feature to feature.

Folded into the first product, such scales would let it read the raw features, which one range of a quantiser cannot
hold: a feature of a thousand leaves no step for one of a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts

_SPREAD = 4.0
"""The ratio of the largest to the smallest number of a constant above which features count as different. A choice: the
deviations of colour channels differ by 2%, and 8 bits minus two leave 64 steps."""
_SCALING = {"Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "BatchNormalization": 4}
"""Maps operators to the last operand that may be the constant."""
_MOVING = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


def scaled_inputs(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the tensors of inputs after they were scaled feature by feature."""
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            continue
        last, is_uneven = _followed(value)
        if is_uneven and not last.is_graph_output():
            yield last


def _followed(value: ir.Value) -> tuple[ir.Value, bool]:
    """Follows a tensor through nodes that scale, shift and move it. Returns the last tensor, and whether a constant
    differed from feature to feature."""
    is_uneven = False
    while True:
        readers = {use.node for use in value.uses() if use.idx == 0 or use.node.op_type in ("Add", "Mul")}
        node = next(iter(readers)) if len(readers) == 1 and len(value.uses()) == 1 else None
        if node is None or node.domain:
            return value, is_uneven
        if node.op_type in _SCALING:
            others = [one for one in node.inputs[: 1 + _SCALING[node.op_type]] if one is not None and one is not value]
            constants = [facts.constant(one) for one in others]
            if any(one is None for one in constants):
                return value, is_uneven
            is_uneven = is_uneven or any(_is_uneven(one) for one in constants if one is not None)
        elif node.op_type not in _MOVING:
            return value, is_uneven
        value = node.outputs[0]


def _is_uneven(constant: Any) -> bool:
    sizes = np.abs(np.asarray(constant, np.float64)).ravel()
    return sizes.size > 1 and float(sizes.max()) > _SPREAD * float(sizes.min())
