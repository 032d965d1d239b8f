"""Equalises a model: divides the large channels of activations, and multiplies the weights that read them.

All channels of an activation share one range. If a few channels are much larger than the rest, 8 bits leave nothing of
the rest. The weights that read them have a range for each output channel, and room to spare. The factor of channel j is
max|X_j|^a / max|W_j|^(1-a) (Xiao et al., "SmoothQuant", arXiv 2211.10438, equation 4); between two convolutions it
equalises the ranges as in Nagel et al., arXiv 1906.04721, section 4.1.

Factors are rounded to powers of two. Multiplying by these is exact, so that the equalised model gives the same outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision import ranges
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.ranges import Channels, Ranges
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.sessions import verify_models

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


ALPHA = 0.5
"""`a`, the share of a peak that moves into the weights. SmoothQuant uses this value for most models."""
_MOST = 12
"""The largest exponent of a factor. A choice: a factor of 4,096, because language models have peaks of a thousand times
the rest."""
_SAMPLES = 2
"""The samples that the proof compares in addition to generated inputs. A choice."""


@dataclass(eq=False)
class Equalised:
    """A model with equalised channels. `changed` names the changed pairs; `ranges` and `clipped` are measured on this
    model."""

    model: ir.Model
    changed: tuple[str, ...]
    ranges: Ranges | None = None
    clipped: Ranges | None = None
    why_not: str = ""
    """Why the model is not used; "" if it is used."""

    def form(self, _: ir.Model) -> ir.Model:
        """Returns the equalised model, for callers that need a function of the given model."""
        return self.model


def equalised(model: ir.Model, runtime: Runtime, samples: Samples) -> Equalised:
    """Equalises a copy of the model, and compares it with the given model.

    Raises:
        OnnxsmithError: the runtime's error for a sample; `verify/…`.
    """
    made = cloned(model)
    found = pairs(made)
    asked = {pair.tensor: pair.channels for pair in found}
    peaks = ranges.channel_peaks(model, runtime, samples, asked) if asked else {}
    changed = scaled(made, found, peaks)
    if not changed:
        return Equalised(model, (), why_not="no channel of an activation is larger than the other channels")
    if not proven(model, made, samples).equal:
        return Equalised(model, (), why_not="the equalised model differs from the given one")
    return Equalised(made, changed, ranges.measured(made, runtime, samples))


def scaled(model: ir.Model, found: list[Pair], peaks: Mapping[str, Array]) -> tuple[str, ...]:
    """Equalises the pairs of a model in place. Returns the changed pairs in words."""
    names = Names(model)
    changed = []
    for pair in found:
        factors = _factors(pair, peaks.get(pair.tensor))
        if factors is None:
            continue
        for operand in pair.writers:
            _multiply(model, names, operand, 1 / factors)
        for operand in pair.readers:
            _multiply(model, names, operand, factors)
        changed.append(pair.said())
    return tuple(changed)


def _factors(pair: Pair, peaks: Array | None) -> Array | None:
    """Returns a power of two for each channel, by which the activation is divided. Returns None if all are 1, or if a
    peak is infinite."""
    if peaks is None or not np.isfinite(peaks).all():
        return None
    weights = np.max([one.peaks(one.array) for one in pair.readers], axis=0).astype(np.float64)
    alive = (peaks > 0) & (weights > 0) & np.isfinite(weights)
    if not alive.any():
        return None
    powers = np.zeros(len(peaks))
    powers[alive] = ALPHA * np.log2(peaks[alive]) - (1 - ALPHA) * np.log2(weights[alive])
    powers[alive] -= np.median(powers[alive])  # scaling the whole tensor would change nothing
    powers = np.clip(np.round(powers), -_MOST, _MOST)
    return np.exp2(powers).astype(np.float32) if powers.any() else None


def _multiply(model: ir.Model, names: Names, operand: Operand, factors: Array) -> None:
    """Multiplies a constant operand. The node gets a copy, because other nodes may read the old constant."""
    old = operand.node.inputs[operand.index]
    assert old is not None
    array = np.asarray(operand.array * operand.spread(factors), np.float32)
    name = names.free(f"{old.name}_equalised")
    tensor = ir.tensor(array, name=name)
    new = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    model.graph.initializers[name] = new
    operand.node.replace_input_with(operand.index, new)
    if not old.uses() and not old.is_graph_output():
        model.graph.initializers.pop(old.name or "", None)


def proven(model: ir.Model, made: ir.Model, samples: Samples) -> Verification:
    """Compares the equalised model with the given one, on samples and on generated inputs."""
    interface = signature(model)
    given = [sample for _, sample in zip(range(_SAMPLES), samples, strict=False)]
    return verify_models(model, made, given=tuple(_feed(interface, sample) for sample in given),
                         names=("the given model", "the equalised model"))  # fmt: skip


def _feed(interface: object, sample: Sample) -> Feed:
    return Feed(sample.name, of_feed(interface, sample.feeds), dict(sample.feeds))  # type: ignore[arg-type]


# Finds the tensors whose channels can be divided in the nodes that write them and multiplied in the products that
# read them.


@dataclass(frozen=True)
class Pair:
    """A tensor, with the constants that scale its channels in the nodes that write it and in the nodes that read it."""

    tensor: str
    channels: Channels
    writers: tuple[Operand, ...]
    readers: tuple[Operand, ...]

    def said(self) -> str:
        """Names the nodes: `norm → query, key`."""
        nodes = dict.fromkeys(one.node.name or one.node.op_type for one in self.readers)
        return f"{self.writers[0].node.name or self.writers[0].node.op_type} → {', '.join(nodes)}"


def pairs(model: ir.Model) -> list[Pair]:
    """Finds the pairs of the main graph, each tensor once.

    Refused:
    1. A reader that is no product with a constant weight, such as the Add of a residual connection.
    2. A tensor that is a graph output, or that a branch or a loop body reads.
    3. A writer that has no constant with a number for each channel, or whose result other nodes read as well.
    4. An activation function between writer and reader that is not positively homogeneous, such as Gelu or Clip.
    """
    found = []
    for node in model.graph:
        for value in node.outputs:
            pair = _pair(model.graph, value)
            if pair is not None:
                found.append(pair)
    return found


def _pair(graph: ir.Graph, value: ir.Value) -> Pair | None:
    if value.is_graph_output() or not value.uses():
        return None
    readers: list[Operand] = []
    channels: Channels | None = None
    for use in value.uses():
        read = reader(use.node, use.idx) if use.node.graph is graph else None
        if read is None or (channels is not None and read[0] != channels):
            return None
        channels = read[0]
        readers.append(read[1])
    assert channels is not None
    written = writers(value, channels)
    return None if written is None else Pair(value.name or "", channels, tuple(written), tuple(readers))
