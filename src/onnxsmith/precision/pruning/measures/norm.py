"""The size of the weights that belong to a channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Slot
from onnxsmith.precision.pruning.groups import Channels
from onnxsmith.precision.pruning.measures.base import Measure, Subject, together
from onnxsmith.verification.metrics.base import Floats

_SCALES = {"BatchNormalization": 1, "InstanceNormalization": 1}
"""The operand of a normalisation that says how large a channel becomes."""


class Norm(Measure):
    """The L2 norm of all weights that make a channel, or read it, each relative to its layer. Biases and running
    statistics do not count: they are no measure of what a channel carries."""

    title = "L2 norm of the channel's weights"

    def scores(self, subject: Subject) -> Sequence[Floats]:
        squares = dict(_squares(subject.model, subject.found))
        return [together(group, squares) for group in subject.found.free]


def _squares(model: ir.Model, found: Channels) -> Iterator[tuple[Slot, Floats]]:
    read = [node.inputs[_SCALES[node.op_type]] for node in model.graph if node.op_type in _SCALES and not node.domain]
    scales = {value.name for value in read if value is not None}
    for slot in {slot for group in found.free for slot in group.slots}:
        value = model.graph.initializers.get(slot[0])
        if value is None or value.const_value is None or value.shape is None:
            continue
        if len(value.shape) < 2 and value.name not in scales:
            continue
        array = np.asarray(value.const_value.numpy())
        if array.dtype.kind == "f":
            others = tuple(axis for axis in range(array.ndim) if axis != slot[1])
            yield slot, np.sum(np.square(array, dtype=np.float64), axis=others)
