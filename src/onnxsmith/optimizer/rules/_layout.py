"""Rewrites operators for data whose axes are in another order.

A permutation names, for each axis of the new order, the axis of the old order, as in a Transpose's `perm`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._patterns import integer

Perm = tuple[int, ...]
ELEMENTWISE = (
    *("Abs", "Add", "And", "Cast", "Ceil", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater"),
    *("GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max"),
    *("Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "Pow", "PRelu", "Reciprocal", "Relu", "Round", "Selu"),
    *("Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tanh", "ThresholdedRelu", "Where"),
    "Xor",
)
"""Lists operators that broadcast their inputs and treat every element alike."""
REDUCING = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)


@dataclass(frozen=True)
class Moved:
    """Describes an operator for another order of axes: the permutation of each input (an input that stays is missing),
    new attributes, and inputs that become other constants."""

    inputs: Mapping[int, Perm]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[int, npt.NDArray[Any]] = field(default_factory=dict)


def perm_of(node: ir.Node) -> Perm | None:
    """Returns the permutation of a Transpose; None if unknown."""
    found = _views.perm(node)
    return None if found is None else tuple(found)


def moved(node: ir.Node, perm: Perm) -> Moved | None:
    """Returns the operator whose results are permuted by `perm`; None if there is none."""
    if node.domain or any(attribute.is_ref() for attribute in node.attributes.values()):
        return None
    if node.op_type in ELEMENTWISE:
        return _broadcasting(node, perm)
    handler = _HANDLERS.get(node.op_type)
    return handler(node, perm) if handler is not None else None


def rank(value: ir.Value | None) -> int | None:
    """Returns the number of axes, or None."""
    dims = facts.dims(value)
    return None if dims is None else len(dims)


def is_one_number(value: ir.Value | None, perm: Perm) -> bool:
    """Whether a value has one element, and no more axes than the permutation."""
    dims = facts.dims(value)
    return dims is not None and len(dims) <= len(perm) and all(dim == 1 for dim in dims)


def _broadcasting(node: ir.Node, perm: Perm) -> Moved | None:
    if facts.opset(node) < 7:
        return None
    inputs = {}
    for index, value in enumerate(node.inputs):
        if value is None or is_one_number(value, perm):
            continue
        count = rank(value)
        if count != len(perm) and not (facts.is_constant(value) and count is not None and count < len(perm)):
            return None
        inputs[index] = perm
    return Moved(inputs) if inputs else None


def _clip(node: ir.Node, perm: Perm) -> Moved | None:
    return Moved({0: perm})


def _along(default: int) -> Callable[[ir.Node, Perm], Moved | None]:
    """Returns a function that permutes operators with an attribute `axis` and results of the input's rank."""

    def handler(node: ir.Node, perm: Perm) -> Moved | None:
        axis = integer(node, "axis", default)
        # before opset 13 these ran over all axes from `axis` on
        if axis is None or (node.op_type in ("Softmax", "LogSoftmax", "Hardmax") and facts.opset(node) < 13):
            return None
        every = range(len(node.inputs)) if node.op_type == "Concat" else range(1)
        return Moved(dict.fromkeys(every, perm), {"axis": perm.index(axis % len(perm))})

    return handler


def _gather(node: ir.Node, perm: Perm) -> Moved | None:
    return _along(0)(node, perm) if rank(node.inputs[1]) == 1 else None


def _pad(node: ir.Node, perm: Perm) -> Moved | None:
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return None
    if facts.opset(node) < 11:
        pads = node.attributes.get("pads")
        return None if pads is None else Moved({0: perm}, {"pads": _by_side(list(pads.as_ints()), perm)})
    array = facts.constant(node.inputs[1])
    if array is None or array.size != 2 * len(perm):
        return None
    return Moved({0: perm}, constants={1: np.array(_by_side(array.ravel().tolist(), perm), array.dtype)})


def _by_side(pads: list[int], perm: Perm) -> list[int]:
    half = len(pads) // 2
    return [side[axis] for side in (pads[:half], pads[half:]) for axis in perm]


def _slice(node: ir.Node, perm: Perm) -> Moved | None:
    if len(node.inputs) < 3:
        return None
    starts = facts.dims(node.inputs[1])
    given = node.inputs[3] if len(node.inputs) > 3 else None
    if given is not None:
        array = facts.constant(given)
    else:
        array = np.arange(starts[0]) if starts is not None and isinstance(starts[0], int) else None
    if array is None:
        return None
    axes = [perm.index(int(axis) % len(perm)) for axis in array.ravel()]
    return Moved({0: perm}, constants={3: np.array(axes, np.int64 if array.dtype != np.int32 else np.int32)})


def _axes(node: ir.Node) -> list[int] | None:
    """Returns the axes that an attribute or the second input names; None if they are unknown, or left out to mean
    all."""
    given = node.attributes.get("axes")
    if given is not None:
        return list(given.as_ints())
    array = facts.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None or array.size == 0 else [int(axis) for axis in array.ravel()]


def _with_axes(node: ir.Node, axes: list[int], perm: Perm) -> Moved:
    """Returns the node with these axes, in the attribute or input that had them, and `perm` for its data."""
    if "axes" in node.attributes:
        return Moved({0: perm}, {"axes": axes})
    return Moved({0: perm}, constants={1: np.array(axes, np.int64)})


def _reduce(node: ir.Node, perm: Perm) -> Moved | None:
    before, axes, kept = rank(node.inputs[0]), _axes(node), integer(node, "keepdims", 1)
    if before is None or axes is None or kept is None:
        return None
    places = sorted(axis % before for axis in axes)
    # without `keepdims`, the result has fewer axes than the data
    inner = perm if kept else _without(perm, places, before)
    return _with_axes(node, sorted(inner.index(place) for place in places), inner)


def _without(perm: Perm, gone: list[int], before: int) -> Perm:
    """Returns the permutation of the data of an operator that removes the axes `gone`. The other axes are permuted as
    by `perm`, and the removed axes stay in place."""
    left = iter([axis for axis in range(before) if axis not in gone][place] for place in perm)
    return tuple(axis if axis in gone else next(left) for axis in range(before))


def _squeeze(node: ir.Node, perm: Perm) -> Moved | None:
    before, axes = rank(node.inputs[0]), _axes(node)
    if before is None or axes is None:
        return None
    places = sorted(axis % before for axis in axes)
    return _with_axes(node, places, _without(perm, places, before))


def _unsqueeze(node: ir.Node, perm: Perm) -> Moved | None:
    axes = _axes(node)
    if axes is None:
        return None
    new = {axis % len(perm) for axis in axes}
    old = [axis for axis in range(len(perm)) if axis not in new]
    places = [place for place, axis in enumerate(perm) if axis in new]
    return _with_axes(node, places, tuple(old.index(axis) for axis in perm if axis not in new))


def _keeps_last(node: ir.Node, perm: Perm) -> Moved | None:
    """Permutes a product with a constant matrix. The permutation must not move the last axis."""
    if rank(node.inputs[1]) != 2 or not facts.is_constant(node.inputs[1]) or perm[-1] != len(perm) - 1:
        return None
    return Moved({0: perm})


def _layer_norm(node: ir.Node, perm: Perm) -> Moved | None:
    axis = integer(node, "axis", -1)
    if axis is None or len(node.outputs) > 1:
        return None
    first = axis % len(perm)
    return Moved({0: perm}) if perm[first:] == tuple(range(first, len(perm))) else None


_HANDLERS: dict[str, Callable[[ir.Node, Perm], Moved | None]] = {
    "Clip": _clip,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _along(-1)),
    "Concat": _along(0),
    "Split": _along(0),
    "Gather": _gather,
    "Pad": _pad,
    "Slice": _slice,
    **dict.fromkeys(REDUCING, _reduce),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "MatMul": _keeps_last,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_norm),
}
