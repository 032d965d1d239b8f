"""Finds constant operands that scale the channels of a tensor, in the nodes that write it and in its readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.precision.ranges import Channels

Array = npt.NDArray[Any]
_BIAS = 2
_MATRIX = 2
PASSING = frozenset({"Abs", "AveragePool", "GlobalAveragePool", "Identity", "LeakyRelu", "MaxPool", "Relu"})
"""Operators with f(s·x) = s·f(x) for s > 0, channel by channel (Nagel et al., arXiv 1906.04721, section 4.1)."""


@dataclass(frozen=True)
class Operand:
    """A constant operand. `spread` turns one number a channel into factors for its elements. `peaks` gives the largest
    magnitude that multiplies each channel."""

    node: ir.Node
    index: int
    spread: Callable[[Array], Array]
    peaks: Callable[[Array], Array] = lambda array: array

    @property
    def array(self) -> Array:
        """Returns the values, float32."""
        value = self.node.inputs[self.index]
        assert value is not None
        assert value.const_value is not None
        return value.const_value.numpy()


def constant(node: ir.Node, index: int) -> ir.Value | None:
    """Returns the operand if it is a float32 constant and no graph input, else None."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.const_value is None or value.is_graph_input() or value.dtype != ir.DataType.FLOAT:
        return None
    return value


def reader(node: ir.Node, index: int) -> tuple[Channels, Operand] | None:
    """Returns the channels of the operand `index`, and the weight that multiplies them. None if the node is no product
    with a constant weight."""
    weight = constant(node, 1) if index == 0 and not node.domain else None
    if weight is None or weight.const_value is None:
        return None
    shape = tuple(weight.const_value.shape.numpy())
    if node.op_type in ("MatMul", "Gemm") and len(shape) == _MATRIX and not _number(node, "transA"):
        axis = 1 if node.op_type == "Gemm" and _number(node, "transB") else 0
        operand = Operand(node, 1, lambda s: np.expand_dims(s, 1 - axis), lambda w: np.abs(w).max(axis=1 - axis))
        return Channels(shape[axis], 0), operand
    if node.op_type == "Conv":
        return Channels(shape[1] * _number(node, "group", 1), len(shape) - 2), _of_conv(node, shape)
    if node.op_type == "ConvTranspose":
        rest = tuple(range(1, len(shape)))
        operand = Operand(node, 1, lambda s: np.expand_dims(s, rest), lambda w: np.abs(w).max(axis=rest))
        return Channels(shape[0], len(shape) - 2), operand
    return None


def _of_conv(node: ir.Node, shape: tuple[int, ...]) -> Operand:
    groups = _number(node, "group", 1)
    ones = (1,) * (len(shape) - 2)

    def spread(numbers: Array) -> Array:
        each = np.repeat(numbers.reshape(groups, shape[1]), shape[0] // groups, axis=0)
        return each.reshape(*shape[:2], *ones)

    def peaks(weight: Array) -> Array:
        parts: Array = np.abs(weight).reshape(groups, shape[0] // groups, shape[1], -1)
        found: Array = parts.max(axis=(1, 3)).reshape(-1)
        return found

    return Operand(node, 1, spread, peaks)


def writers(value: ir.Value, channels: Channels) -> list[Operand] | None:
    """Returns the constants to multiply in order to multiply each channel of the value. None if a factor fits into no
    constant, or if other nodes would see the change."""
    node = value.producer()
    if node is None or node.domain or value.is_graph_output():
        return None
    if node.op_type in PASSING:
        return _behind(node.inputs[0], channels)
    if node.op_type in ("Mul", "Add"):
        return _elementwise(node, channels)
    return _of_norm_or_product(node, channels)


def _behind(value: ir.Value | None, channels: Channels) -> list[Operand] | None:
    """Returns the same as `writers`, for a value that only one node reads."""
    return writers(value, channels) if value is not None and len(value.uses()) == 1 else None


def _elementwise(node: ir.Node, channels: Channels) -> list[Operand] | None:
    held = [index for index in (0, 1) if constant(node, index) is not None]
    if len(held) != 1:
        return None
    own = Operand(node, held[0], channels.aligned)
    if node.op_type == "Mul":
        return [own]
    more = _behind(node.inputs[1 - held[0]], channels)
    return None if more is None else [own, *more]


def _of_norm_or_product(node: ir.Node, channels: Channels) -> list[Operand] | None:
    last, middle = channels.trailing == 0, channels.trailing > 0
    if node.op_type in ("LayerNormalization", "RMSNormalization"):
        fits = last and _number(node, "axis", -1) == -1 and not any(one.uses() for one in node.outputs[1:])
        return _both(node, channels, 0, np.asarray) if fits else None
    if node.op_type in ("BatchNormalization", "InstanceNormalization"):
        return _both(node, channels, 0, np.asarray) if middle and len(node.outputs) == 1 else None
    if node.op_type in ("MatMul", "Gemm") and last:
        axis = 0 if node.op_type == "Gemm" and _number(node, "transB") else 1
        return _both(node, channels, axis, lambda s: np.expand_dims(s, 1 - axis))
    if node.op_type == "Conv" and middle:
        return _both(node, channels, 0, lambda s: channels.aligned(s)[:, None])
    return None


def _both(node: ir.Node, channels: Channels, axis: int, spread: Callable[[Array], Array]) -> list[Operand] | None:
    """Returns both constants of a node, of which the second may be absent. The second has one number a channel; `axis`
    is the channel axis of the first."""
    first = constant(node, 1)
    has_bias = len(node.inputs) > _BIAS and node.inputs[_BIAS] is not None
    if first is None or first.const_value is None or (has_bias and constant(node, _BIAS) is None):
        return None
    sizes = first.const_value.shape.numpy()
    if len(sizes) <= axis or sizes[axis] != channels.count:
        return None
    found = [Operand(node, 1, spread)]
    return [*found, Operand(node, _BIAS, np.asarray)] if has_bias else found


def _number(node: ir.Node, name: str, default: int = 0) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()
