"""The mean square of a channel's values on data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.precision.pruning.channel_links import Slot
from onnxsmith.precision.pruning.measures.base import Measure, Subject, together
from onnxsmith.verification.metrics.base import Floats

_AXES_OPERAND = 18
"""The opset in which the axes of ReduceMean became an operand (ONNX Changelog.md)."""


class Activation(Measure):
    """The mean square of the tensors in which a channel is read by a product, on the calibration data. It is measured
    in the graph: a number for each channel leaves the runtime."""

    title = "mean square of the channel's values on the calibration data"

    def scores(self, subject: Subject) -> Sequence[Floats]:
        read = subject.found.links.read
        wanted = {one for group in subject.found.free for slot in group.products for one in read[slot]}
        model, names = _measuring(subject.model, sorted(wanted))
        sums: dict[Slot, Floats] = {}
        count = 0
        with subject.runtime.prepare(model) as session:
            for sample in subject.samples:
                outputs = session.run(dict(sample.feeds))
                for slot, name in names.items():
                    sums[slot] = sums.get(slot, 0.0) + np.asarray(outputs[name], np.float64)
                count += 1
        return [together(group, sums) for group in subject.found.free]


def _measuring(model: ir.Model, slots: Sequence[Slot]) -> tuple[ir.Model, dict[Slot, str]]:
    """A copy of the model whose outputs are the mean squares along the slots, with their names."""
    made = cloned(model)
    graph, names = made.graph, Names(made)
    values = {value.name: value for node in graph for value in node.outputs}
    found: dict[Slot, str] = {}
    graph.outputs.clear()
    for slot in slots:
        value = values[slot[0]]
        others = [axis for axis in range(len(value.shape or ())) if axis != slot[1]]
        square = ir.Value(name=names.free(f"{slot[0]}_square"))
        mean = ir.Value(name=names.free(f"{slot[0]}_mean_square"), type=value.type,
                        shape=ir.Shape([_size(value, slot[1])]))  # fmt: skip
        graph.append(ir.Node("", "Mul", [value, value], outputs=[square]))
        graph.append(_mean(graph, square, others, mean, names, opsets.of(made)))
        graph.outputs.append(mean)
        found[slot] = mean.name or ""
    return made, found


def _size(value: ir.Value, axis: int) -> int:
    """The size of an axis that is known."""
    assert value.shape is not None
    size = value.shape[axis]
    assert isinstance(size, int)
    return size


def _mean(graph: ir.Graph, x: ir.Value, axes: list[int], y: ir.Value, names: Names, opset: int) -> ir.Node:
    keeps = ir.AttrInt64("keepdims", 0)
    if opset < _AXES_OPERAND:
        return ir.Node("", "ReduceMean", [x], [ir.AttrInt64s("axes", axes), keeps], outputs=[y])
    tensor = ir.tensor(np.asarray(axes, np.int64))
    operand = ir.Value(name=names.free("other_axes"), const_value=tensor)
    tensor.name = operand.name
    graph.initializers[operand.name or ""] = operand
    return ir.Node("", "ReduceMean", [x, operand], [keeps], outputs=[y])
