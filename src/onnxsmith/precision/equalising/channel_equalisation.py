"""Equalises a model: divides the large channels of activations, and multiplies the weights that read them.

All channels of an activation share one range. If a few channels are much larger than the rest, 8 bits leave nothing of
the rest. The weights that read them have a range for each output channel, and room to spare. The factor of channel j is
max|X_j|^a / max|W_j|^(1-a) (Xiao et al., "SmoothQuant", arXiv 2211.10438, equation 4); between two convolutions it
equalises the ranges as in Nagel et al., arXiv 1906.04721, section 4.1.

Factors are rounded to powers of two. Multiplying by these is exact, so that the equalised model gives the same outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision import ranges
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.equalising.channel_operands import Array, Operand, reader, writers
from onnxsmith.precision.ranges import Channels, Ranges
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.sessions import verify_models

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
        return Equalised(model, (), why_not="no channel of an activation is larger than the rest")
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
