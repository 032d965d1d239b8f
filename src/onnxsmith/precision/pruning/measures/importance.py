"""Measures how important channels are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.precision.pruning.channel_groups import Channels, Group
from onnxsmith.precision.pruning.channel_links import Slot
from onnxsmith.precision.pruning.measures.base import Measure, Subject, together
from onnxsmith.precision.pruning.torch_parameters import of_initializers
from onnxsmith.verification.metrics.base import Floats

_SCALES = {"BatchNormalization": 1, "InstanceNormalization": 1}
"""The operand of a normalisation that scales the channels."""


class Norm(Measure):
    """The L2 norm of all weights that compute or read a channel, relative to the layer. Biases and running statistics
    do not count, because they do not measure what a channel carries."""

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


_AXES_OPERAND = 18
"""The opset in which the axes of ReduceMean became an operand (ONNX Changelog.md)."""


class Activation(Measure):
    """The mean square, on the calibration data, of a channel in the tensors that products read. It is measured inside
    the graph: one number for each channel leaves the runtime."""

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
    """Returns a copy of the model whose outputs are the mean squares along the slots, and the names of these
    outputs."""
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
    """Returns the size of an axis with a known size."""
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


class FirstOrder(Measure):
    """The sum of the squares of weight times gradient over all weights of a channel (P. Molchanov et al., "Importance
    Estimation for Neural Network Pruning", CVPR 2019, arXiv 1906.10771, equation 9). The user gives the squares by
    parameter of the torch module, as a mean over batches, because only torch has gradients. All layers share the scale
    of the loss, so that the numbers are not scaled by layer as in the other measures."""

    title = "first-order effect on the loss, from the given saliency"

    def scores(self, subject: Subject) -> Sequence[Floats]:
        known = of_initializers(subject.model, subject.saliency, subject.places)
        sums = [_sums(group, known) for group in subject.found.free]
        if missing := [group for group, own in zip(subject.found.free, sums, strict=True) if own is None]:
            raise _missing(missing[0], subject.found)
        found = [own for own in sums if own is not None]
        mean = float(np.mean(np.concatenate(found))) or 1.0
        return [own / mean for own in found]


def _sums(group: Group, known: dict[str, Floats]) -> Floats | None:
    """Adds the saliency of each channel of a group; None if no weight of the group has a saliency."""
    total, any_known = np.zeros(len(group.channels)), False
    for place, (name, axis) in enumerate(group.slots):
        own = known.get(name)
        if own is None:
            continue
        along = own.sum(axis=tuple(other for other in range(own.ndim) if other != axis))
        total += [along[channel[place][1]].sum() for channel in group.channels]
        any_known = True
    return total if any_known else None


def _missing(group: Group, found: Channels) -> Exception:
    names = [name for name, _ in group.slots]
    return problem(
        "prune/saliency",
        "no saliency is given for the weights of some channels",
        where=", ".join(names)[:200],
        why=f"{len(found.free)} groups of channels can be removed, but for this group there is no measure of which "
        "channels matter",
        fix="give the saliency of all parameters (`onnxsmith explain prune/saliency`), or --by norm",
    )
