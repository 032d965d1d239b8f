"""Folds scales and shifts of channels into the weights of linear operators.

A step is an operator that scales and shifts channels by constants. A fold computes in float64 and stores in the dtype
of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.optimizer.rules import _activations, _written_out_norms
from onnxsmith.optimizer.rules._intermediate_range import leaves_range
from onnxsmith.optimizer.rules._patterns import FLOATS, fits, integer, maker, read_elsewhere, two_ways
from onnxsmith.optimizer.rules.base import Blamed, Exactness, Match, NoMatch, Rule

Vector = npt.NDArray[np.float64]
"""Holds a number for each channel."""


@dataclass(frozen=True)
class Step:
    """Computes source * scale + shift by constants, in float64. With `by_channel`, the constants have one number per
    channel of axis 1, and are not broadcast."""

    source: ir.Value
    scale: npt.NDArray[np.float64]
    shift: npt.NDArray[np.float64]
    by_channel: bool = False

    def vectors(self, channels: int, rank: int, axis: int) -> tuple[Vector, Vector] | None:
        """Returns scale and shift for each of the `channels` along an axis (1 or -1) of a tensor of this rank. Returns
        None if they vary along other axes, raise the rank, or have another number of channels."""
        pair = [self.scale, self.shift]
        if self.by_channel:
            pair = [array.reshape(-1, *[1] * (rank - 2)) for array in pair]
        found = [per_channel(array, channels, rank, axis) for array in pair]
        return None if found[0] is None or found[1] is None else (found[0], found[1])


def per_channel(array: npt.NDArray[Any], channels: int, rank: int, axis: int) -> Vector | None:
    """Returns the constant as `channels` numbers in float64, one for each channel along an axis of a tensor of this
    rank. Returns None if it varies along other axes, raises the rank, or has another number of channels."""
    if array.ndim > rank or array.dtype.kind != "f" or not -rank <= axis < rank:
        return None
    full = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for place, size in enumerate(full) if place != axis % rank) or full[axis] not in (1, channels):
        return None
    return np.broadcast_to(array.astype(np.float64).ravel(), (channels,))


def steps(node: ir.Node) -> Iterator[tuple[ir.Value, Step | NoMatch]]:
    """Yields the ways to read a Mul, Div, Add, Sub, Neg or BatchNormalization as a step, each with the value that a
    refusal names. Yields nothing before opset 7, where attributes controlled broadcasting and training mode."""
    if facts.opset(node) < 7 or node.inputs[0] is None:
        return
    if node.op_type == "BatchNormalization":
        yield node.inputs[0], _normalisation(node, node.inputs[0])
    elif node.op_type == "Neg":
        if node.inputs[0].dtype is not None and node.inputs[0].dtype.is_floating_point():
            yield node.outputs[0], Step(node.inputs[0], -np.ones(()), np.zeros(()))
    elif node.op_type in ("Mul", "Div", "Add", "Sub"):
        for value, other in two_ways(node):
            array = facts.constant(other)
            if array is not None and array.dtype.kind == "f":
                yield other, _arithmetic(node.op_type, value, array.astype(np.float64))


def _arithmetic(op_type: str, source: ir.Value, number: npt.NDArray[np.float64]) -> Step:
    if op_type in ("Add", "Sub"):
        return Step(source, np.ones(()), number if op_type == "Add" else -number)
    with np.errstate(divide="ignore"):
        return Step(source, number if op_type == "Mul" else 1 / number, np.zeros(()))


def _normalisation(node: ir.Node, source: ir.Value) -> Step | NoMatch:
    if integer(node, "training_mode", 0) != 0 or len(node.outputs) > 1:
        return NoMatch("the normalisation is in training mode", node)
    if integer(node, "spatial", 1) != 1:
        return NoMatch("the normalisation treats each position separately", node)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for name, value in zip(("scale", "shift", "mean", "variance"), node.inputs[1:], strict=False):
        array = facts.constant(value)
        if array is None or array.dtype.kind != "f" or array.ndim != 1:
            return NoMatch(f"{name} is not a constant", node)
        found[name] = array.astype(np.float64)
    epsilon = node.attributes.get("epsilon")
    if epsilon is not None and epsilon.is_ref():
        return NoMatch("epsilon is an attribute of the enclosing function", node)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = found["scale"] / np.sqrt(found["variance"] + (epsilon.as_float() if epsilon else 1e-5))
        return Step(source, scale, found["shift"] - found["mean"] * scale, by_channel=True)


Array = npt.NDArray[Any]
_MOST_SHARING = 64
"""Limits the readers of shared weights that are compared. A choice that bounds the cost."""
LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class Linear:
    """Describes an operator of `LINEAR` with weights of known shape by its channels. `nodes` are the operator and, if
    it exists, the Add of its bias (MatMul has no bias input), the last first."""

    nodes: tuple[ir.Node, ...]
    weight: ir.Value
    shape: tuple[int, ...]
    bias: ir.Value | None
    rank: int
    """Is the rank of data and result, or a lower bound of it."""

    @property
    def node(self) -> ir.Node:
        """Returns the operator itself."""
        return self.nodes[-1]

    @property
    def axis(self) -> int:
        """Returns the axis of the channels, in data and result."""
        return 1 if self.node.op_type in ("Conv", "ConvTranspose") else -1

    @property
    def group(self) -> int:
        """Returns the number of groups of channels; channels of different groups do not mix."""
        return integer(self.node, "group", 1) or 1

    @property
    def transposed(self) -> bool:
        """Whether the weights have the input channels first (as in ConvTranspose), not the output channels."""
        return self.node.op_type in ("ConvTranspose", "MatMul") or (
            self.node.op_type == "Gemm" and not integer(self.node, "transB", 0)
        )

    @property
    def channels(self) -> int:
        """Returns the number of output channels."""
        return self.shape[1] * self.group if self.transposed else self.shape[0]

    @property
    def channels_in(self) -> int:
        """Returns the number of input channels."""
        return self.shape[0] if self.transposed else self.shape[1] * self.group

    @property
    def summed(self) -> tuple[int, int]:
        """Returns the axes of `by_group` over which one element of the result sums."""
        return (1, 3) if self.transposed else (2, 3)

    def by_group(self, weight: Array) -> npt.NDArray[np.float64]:
        """Returns the weights reshaped to (group, first axis within a group, second axis, rest)."""
        first, second = self.shape[:2]
        return weight.astype(np.float64).reshape(self.group, first // self.group, second, -1)

    def scaled(self, weight: Array, scale: Vector, *, data: bool = False) -> npt.NDArray[np.float64]:
        """Returns the weights times a number for each output channel, or (`data`) for each input channel."""
        along = scale.reshape(self.group, -1)
        factors = along[:, :, None, None] if self.transposed == data else along[:, None, :, None]
        return (self.by_group(weight) * factors).reshape(weight.shape)


@dataclass(frozen=True)
class Folded:
    """Describes the folded operator. Arrays become initializers; None keeps an input as it is."""

    linear: Linear
    weight: Array | None
    bias: Array | None

    def write(self, tape: ir.tape.Tape, source: ir.Value | None) -> ir.Value:
        """Writes the operator on `source`."""
        node, weight, bias = self.linear.node, self.linear.weight, self.linear.bias
        name = weight.name or "weights"
        if self.weight is not None:
            weight = tape.initializer(ir.tensor(self.weight), name=f"{name}_folded")
        if self.bias is not None:
            bias = tape.initializer(ir.tensor(self.bias), name=f"{name}_folded_bias")
        op_type, attributes = node.op_type, dict(node.attributes)
        if len(self.linear.nodes) > 1 and bias is not None:
            return tape.op("Add", [tape.op(op_type, [source, weight], attributes), bias])
        if op_type == "MatMul" and bias is not None:
            op_type = "Gemm"
        if self.bias is not None:
            attributes.pop("beta", None)
        return tape.op(op_type, [source, weight] if bias is None else [source, weight, bias], attributes)


def linear(value: ir.Value | None, reader: ir.Node, *op_types: str) -> Linear | NoMatch | None:
    """Returns the linear operator that makes the value, together with the Add of a constant bias. None if no operator
    of these types makes the value, a refusal if too little is known about it."""
    node = maker(value, reader, *op_types)
    if node is not None:
        return _linear((node,), node.inputs[2] if len(node.inputs) > 2 else None)
    add = maker(value, reader, "Add") if "MatMul" in op_types else None
    for product, bias in () if add is None else two_ways(add):
        node = maker(product, reader, "MatMul")
        if add is not None and node is not None and facts.constant(bias) is not None:
            return _linear((add, node), bias)
    return None


def _linear(nodes: tuple[ir.Node, ...], bias: ir.Value | None) -> Linear | NoMatch | None:
    node = nodes[-1]
    weight = node.inputs[1]
    if node.op_type == "MatMul" and facts.constant(weight) is None:
        return None
    dims = _known_dims(weight)
    where = weight if weight is not None else ""
    if weight is None or dims is None or len(dims) < 2 or (node.op_type == "MatMul" and len(dims) != 2):
        return NoMatch("the number of channels is not known", where)
    shape = tuple(dim for dim in dims if isinstance(dim, int))
    group = integer(node, "group", 1)
    if len(shape) < len(dims) or not group or shape[0] % group or 0 in shape:
        return NoMatch("the number of channels is not known", where)
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return NoMatch("the node uses attributes of the enclosing function", node)
    rank = len(dims)
    if node.op_type == "MatMul":
        data = facts.dims(node.inputs[0])
        rank = 1 if data is None else len(data)
    return Linear(nodes, weight, shape, bias, rank)


def _known_dims(value: ir.Value | None) -> Sequence[facts.Element | None] | None:
    """Returns the dimensions, also of a constant inside a function, where there is no inference."""
    array = facts.constant(value) if value is not None and value.shape is None else None
    return facts.dims(value) if array is None else array.shape


def _known_dtype(value: ir.Value) -> ir.DataType | None:
    """Returns the dtype, also of a constant inside a function."""
    tensor = const_tensor(value) if value.dtype is None else None
    return value.dtype if tensor is None else tensor.dtype


def fold(found: Linear, step: Step, where: Blamed, *, underflow: bool, shared: bool = False) -> Folded | NoMatch:
    """Folds the step after the operator into its weights. `underflow` allows small products to lose bits; `shared`
    allows other readers of the weights."""
    vectors = step.vectors(found.channels, found.rank, found.axis)
    if vectors is None:
        return NoMatch("the constant is not one number for each channel", where)
    scale, shift = vectors
    scales = bool((scale != 1).any())
    weight = _product(found, scale, where, data=False, underflow=underflow, shared=shared) if scales else None
    if isinstance(weight, NoMatch):
        return weight
    bias = None
    if shift.any() or (scales and found.bias is not None):
        bias = _sum(found, scale, shift, where)
    return bias if isinstance(bias, NoMatch) else Folded(found, weight, bias)


def fold_input(found: Linear, step: Step, where: Blamed, *, underflow: bool) -> Folded | NoMatch:
    """Folds the step before the operator into its weights. `underflow` as in `fold`."""
    vectors = step.vectors(found.channels_in, found.rank, found.axis)
    if vectors is None or not (
        step.by_channel or fits(np.broadcast_shapes(step.scale.shape, step.shift.shape), step.source)
    ):
        return NoMatch("the constant is not one number for each channel", where)
    if integer(found.node, "transA", 0):
        return NoMatch("the channels of its data are not along the last axis", found.node)
    scale, shift = vectors
    weight = _product(found, scale, where, data=True, underflow=underflow) if (scale != 1).any() else None
    if isinstance(weight, NoMatch):
        return weight
    bias = None
    if shift.any():
        # zeros in the padding stand for zeros after the shift, not before it
        if not _is_unpadded(found.node):
            return NoMatch("zeros are padded after the shift", found.node)
        if found.node.op_type == "ConvTranspose" and not _is_pointwise(found):
            return NoMatch("different weights apply the shift at each position", found.node)
        array = facts.constant(found.weight)
        assert array is not None  # rules have checked this before
        alpha = found.node.attributes.get("alpha")
        moved = found.scaled(array, shift, data=True) * (1.0 if alpha is None else alpha.as_float())
        grouped = found.by_group(moved).sum(axis=found.summed)
        bias = _sum(found, np.ones(found.channels), grouped.ravel(), where)
    return bias if isinstance(bias, NoMatch) else Folded(found, weight, bias)


def _is_unpadded(node: ir.Node) -> bool:
    auto, pads = node.attributes.get("auto_pad"), node.attributes.get("pads")
    if auto is not None and auto.as_string() not in ("NOTSET", "VALID"):
        return False
    return pads is None or not any(pads.as_ints())


def _is_pointwise(found: Linear) -> bool:
    """Whether each position of the result is computed from one position of the data, by the same weights."""
    node = found.node
    strides, more = node.attributes.get("strides"), node.attributes.get("output_padding")
    if "output_shape" in node.attributes or (more is not None and any(more.as_ints())):
        return False
    return set(found.shape[2:]) <= {1} and (strides is None or set(strides.as_ints()) <= {1})


def _product(
    found: Linear, scale: Vector, where: Blamed, *, data: bool, underflow: bool, shared: bool = False
) -> Array | NoMatch:
    array = facts.constant(found.weight)
    if array is None or array.dtype.kind != "f":
        return NoMatch("weights or bias are not constants: the weight is not a constant", found.weight)
    if (len(found.weight.uses()) > 1 and not shared) or found.weight.is_graph_output():
        return NoMatch("the weights are also used elsewhere", found.weight)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = found.scaled(array, scale, data=data)
        size, limits = np.abs(exact), np.finfo(array.dtype)
        # the bits that a small product loses are below the rounding error of the sum's largest term
        largest = found.by_group(size).max(axis=found.summed)
        lost = found.by_group((size < limits.tiny) & (exact != 0)).any(axis=found.summed)
    if leaves_range(*_in_order(found, array, scale, data=data), limits):
        return NoMatch("the intermediate result overflows or becomes 0 where the final result does not", where)
    if not (size <= limits.max).all() or (not underflow and (lost & (largest < limits.tiny)).any()):
        return NoMatch("a product is out of the range of the weights' dtype", where)
    return exact.astype(array.dtype)


def _in_order(found: Linear, weights: Array, scale: Vector, *, data: bool) -> tuple[Vector, Vector]:
    """Returns the factors of each channel in the order in which the data meets them: of the weights the largest."""
    axes = (2, 3) if found.transposed == data else (1, 3)
    largest = np.abs(found.by_group(weights)).max(axis=axes).ravel()
    return (scale, largest) if data else (largest, scale)


def _sum(found: Linear, scale: Vector, shift: Vector, where: Blamed) -> Array | NoMatch:
    """Returns the new bias: the old bias times the scale, plus the shift."""
    dtype = _known_dtype(found.weight)
    if dtype not in FLOATS or dtype is None:
        return NoMatch("the dtype is not known to be floating point", found.weight)
    if found.bias is None and found.node.op_type == "MatMul" and found.rank != 2:
        return NoMatch("a MatMul has no bias, and is not provably a Gemm", found.node)
    old = np.zeros(1)
    if found.bias is not None:
        array, number = facts.constant(found.bias), uniform(found.bias)
        if array is None and number is not None and len(found.nodes) == 1:
            array = np.full(1, number, dtype.numpy())
        if array is None:
            return NoMatch("weights or bias are not constants: the bias is not a constant", found.bias)
        row = per_channel(array, found.channels, 1 if found.axis == 1 else found.rank, -1)
        if row is None:
            return NoMatch("the bias is not one number for each channel", found.bias)
        beta = found.node.attributes.get("beta")
        old = row * (1.0 if beta is None else beta.as_float())
    with np.errstate(over="ignore", invalid="ignore"):
        total: Array = np.broadcast_to(old * scale + shift, (found.channels,)).astype(dtype.numpy())
    if not np.isfinite(total).all():
        return NoMatch("the bias would overflow", where)
    return total


class AfterLinear(Rule):
    """Folds a scale or shift of a linear operator's output channels into its weights and bias."""

    exactness = Exactness.REASSOCIATES
    operators: ClassVar[tuple[str, ...]]
    underflow: ClassVar[bool] = False

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for where, step in steps(node):
            source = node.inputs[0] if isinstance(step, NoMatch) else step.source
            found = linear(source, node, *self.operators)
            if found is None:
                continue
            if isinstance(found, NoMatch):
                return found
            if isinstance(step, NoMatch):
                return step
            every = (node, *found.nodes)
            folded = read_elsewhere(every) or fold(
                found, step, where, underflow=self.underflow, shared=_is_done_alike(found, node)
            )
            return folded if isinstance(folded, NoMatch) else Match(node, every, {"folded": folded})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        folded: Folded = match.found["folded"]
        return folded.write(tape, folded.linear.node.inputs[0])


def _is_done_alike(found: Linear, step: ir.Node) -> bool:
    """Whether every reader of the weights is followed by the same step, so that all readers can share the new
    weights."""
    others = [node for node in found.weight.consumers() if node is not found.node]
    for other in others if len(others) < _MOST_SHARING else ():
        readers = other.outputs[0].consumers()
        if other.op_type != found.node.op_type or len(readers) != 1 or other.outputs[0].is_graph_output():
            return False
        (reader,) = readers
        alike = reader.op_type == step.op_type and integer(other, "group", 1) == found.group
        if not alike or len(reader.inputs) != len(step.inputs) or reader.attributes or step.attributes:
            return False
        pairs = zip(reader.inputs, step.inputs, strict=True)
        if any(a is not b for a, b in pairs if a is not other.outputs[0] or b is not found.node.outputs[0]):
            return False
    return len(found.nodes) == 1 and len(found.weight.uses()) == len(others) + 1 and len(others) < _MOST_SHARING


class BeforeLinear(Rule):
    """Folds a scale or shift of a linear operator's input channels into its weights and bias, unless an earlier linear
    operator can take it, or it is the end of a written-out normalisation or part of a written-out activation."""

    exactness = Exactness.REASSOCIATES
    steps_by: ClassVar[tuple[str, ...]]
    underflow: ClassVar[bool] = False

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        made = maker(node.inputs[0], node, *self.steps_by)
        if made is None or facts.constant(node.inputs[1]) is None or _written_out_norms.affine(made) is not None:
            return None
        found = linear(node.outputs[0], node, node.op_type)
        for where, step in steps(made):
            if isinstance(step, NoMatch):
                return step
            if found is None or isinstance(found, NoMatch):
                return found
            before = linear(step.source, node, *LINEAR)
            if isinstance(before, Linear) and read_elsewhere((made, *before.nodes)) is None:
                folded = fold(before, step, "", underflow=self.underflow)
                if isinstance(folded, Folded):
                    return None
            folded = read_elsewhere((node, made)) or fold_input(found, step, where, underflow=self.underflow)
            if isinstance(folded, NoMatch):
                return folded
            if _activations.is_part(made):
                return None
            return Match(node, (node, made), {"folded": folded, "source": step.source})
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        folded: Folded = match.found["folded"]
        return folded.write(tape, match.found["source"])
