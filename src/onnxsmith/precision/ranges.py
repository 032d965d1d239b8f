"""Measures the ranges of a model's float tensors over data, inside the graph, and narrows them for 8 bits.

Memory does not grow with the number of samples. Each tensor is measured directly after the node that computes it, so
that a run holds no more tensors than a run of the model alone.

A range that includes the rarest value has coarse steps for all other values. For each tensor several shares of its
range are tried on data, and the share with the least quantisation error is taken (Nagel et al., "A White Paper on
Neural Network Quantization", arXiv 2106.08295, section 3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.precision.data.base import DATA, Sample
from onnxsmith.runtimes.base import Options, Runtime

_LOW, _HIGH, _PEAKS = "lowest", "highest", "peaks"
_AXES_ARE_INPUT = 18
"""The first opset in which ReduceMax takes its axes as an input."""


@dataclass(frozen=True)
class Channels:
    """The channels of a tensor: their count, and the number of axes after the channel axis."""

    count: int
    trailing: int

    def aligned(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reshapes one number a channel so that the numbers broadcast with the tensor."""
        return numbers.reshape(self.count, *(1 for _ in range(self.trailing)))


@dataclass(frozen=True)
class Range:
    """The least and the greatest value of a tensor. They are not finite if an element was not."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """Returns the largest magnitude."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Ranges:
    """Ranges by tensor, and the number of samples on which they were measured."""

    by_name: Mapping[str, Range]
    samples: int


def measured(model: ir.Model, runtime: Runtime, samples: Iterable[Sample]) -> Ranges:
    """Measures the ranges of the float32 tensors of the main graph, its inputs included.

    Raises:
        OnnxsmithError: `quantize/no-data` if there is no sample; the runtime's error for an input that it refuses.
    """
    made, names = with_extremes(model)
    if not names:  # for example, a float16 model
        return Ranges({}, _counted(sum(1 for _ in samples)))
    lows = np.full(len(names), np.inf)
    highs = np.full(len(names), -np.inf)
    count = 0
    with runtime.prepare(made, Options(in_order=True)) as session:
        for sample in samples:
            outputs = sample.run(session)
            lows = np.minimum(lows, np.asarray(outputs[_LOW], np.float64))
            highs = np.maximum(highs, np.asarray(outputs[_HIGH], np.float64))
            count += 1
    _counted(count)
    found = {name: Range(float(low), float(high)) for name, low, high in zip(names, lows, highs, strict=True)}
    return Ranges({name: one for name, one in found.items() if not (one.low == np.inf and one.high == -np.inf)}, count)


def _counted(count: int) -> int:
    if not count:
        raise problem("quantize/no-data", "there is no sample to calibrate on", fix=f"give some: --calibration {DATA}")
    return count


def channel_peaks(
    model: ir.Model, runtime: Runtime, samples: Iterable[Sample], tensors: Mapping[str, Channels]
) -> dict[str, npt.NDArray[np.float64]]:
    """Measures the largest magnitude in each channel of the tensors, over the samples.

    Raises:
        OnnxsmithError: the runtime's error for an input that it refuses.
    """
    ends = np.cumsum([one.count for one in tensors.values()])
    found = np.zeros(int(ends[-1]))
    with runtime.prepare(with_channel_peaks(model, tensors), Options(in_order=True)) as session:
        for sample in samples:
            found = np.maximum(found, np.asarray(sample.run(session)[_PEAKS], np.float64))
    return dict(zip(tensors, np.split(found, ends[:-1]), strict=True))


def with_channel_peaks(model: ir.Model, tensors: Mapping[str, Channels]) -> ir.Model:
    """Returns a copy of the model whose only output holds the largest magnitudes of all channels of the tensors, in
    order."""
    made = cloned(model)
    names = Names(made)
    values = {value.name: value for node in made.graph for value in node.outputs}
    by_attribute = opsets.of(made) < _AXES_ARE_INPUT
    ends: list[ir.Value] = []
    for name, channels in tensors.items():
        axes = [0] if not channels.trailing else [0, 2]
        shape = [-1, channels.count] if not channels.trailing else [0, channels.count, -1]
        size = ir.Value(name=names.free(f"{name}_shape"), const_value=ir.tensor(np.array(shape, np.int64)))
        over = ir.Value(name=names.free(f"{name}_axes"), const_value=ir.tensor(np.array(axes, np.int64)))
        flags = [ir.AttrInt64("keepdims", 0), *([ir.AttrInt64s("axes", axes)] if by_attribute else [])]
        flat = ir.Node("", "Reshape", [values[name], size])
        positive = ir.Node("", "Abs", [flat.outputs[0]])
        most = ir.Node("", "ReduceMax", [positive.outputs[0], *([] if by_attribute else [over])], flags)
        for held in (size, *(() if by_attribute else (over,))):
            made.graph.initializers[held.name or ""] = held
        for node in (flat, positive, most):
            node.outputs[0].name = names.free(f"{name}_{node.op_type}")
        behind(made.graph, values[name], [flat, positive, most])
        ends.append(most.outputs[0])
    out = ir.Value(name=names.free(_PEAKS), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([None]))
    made.graph.append(ir.Node("", "Concat", ends, [ir.AttrInt64("axis", 0)], outputs=[out]))
    made.graph.outputs.clear()
    made.graph.outputs.append(out)
    return made


def with_extremes(model: ir.Model) -> tuple[ir.Model, list[str]]:
    """Returns a copy of the model whose outputs are the least and the greatest values of all float32 tensors. Also
    returns the names of the tensors, in the same order."""
    made = cloned(model)
    graph = made.graph
    names = Names(made)
    values = [value for value in graph.inputs if value.name not in graph.initializers]
    values += [value for node in graph for value in node.outputs]
    floats = [value for value in values if value.name and value.dtype == ir.DataType.FLOAT and not _is_empty(value)]
    axes = ir.Value(name=names.free("every_axis"), const_value=ir.tensor(np.array([-1], np.int64)))
    graph.initializers[axes.name or ""] = axes
    results, last = [], []
    for op, name in (("ReduceMin", _LOW), ("ReduceMax", _HIGH)) if floats else ():
        ends = [_one_number(graph, value, op, axes, names) for value in floats]
        out = ir.Value(name=names.free(name), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([len(floats)]))
        last.append(ir.Node("", "Concat", ends, [ir.AttrInt64("axis", 0)], outputs=[out]))
        results.append(out)
    graph.extend(last)
    graph.outputs.clear()
    graph.outputs.extend(results)
    made.opset_imports[""] = opsets.of(made)
    return made, [value.name or "" for value in floats]


def behind(graph: ir.Graph, value: ir.Value, nodes: list[ir.Node]) -> None:
    """Inserts nodes directly after the node that computes the value; for a graph input, before all nodes."""
    maker = value.producer()
    first = next(iter(graph), None)
    if maker is not None:
        graph.insert_after(maker, nodes)
    elif first is not None:
        graph.insert_before(first, nodes)
    else:
        graph.extend(nodes)


def _one_number(graph: ir.Graph, value: ir.Value, op: str, shape: ir.Value, names: Names) -> ir.Value:
    extreme = ir.Value(name=names.free(f"{value.name}_{op}"))
    end = ir.Value(name=names.free(f"{value.name}_{op}_1"))
    reduced = ir.Node("", op, [value], [ir.AttrInt64("keepdims", 0)], outputs=[extreme])
    behind(graph, value, [reduced, ir.Node("", "Reshape", [extreme, shape], outputs=[end])])
    return end


def _is_empty(value: ir.Value) -> bool:
    """Whether the tensor has no elements, and so no extremes."""
    return value.shape is not None and any(dim == 0 for dim in value.shape)


SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of the range that are tried. A choice: below a fifth, clipping cost more than the finer steps gained, in each
network tried."""
_STEPS = 255
_ERRORS = "errors"


def clipped(
    model: ir.Model, found: Ranges, tensors: Collection[str], runtime: Runtime, samples: Iterable[Sample]
) -> Ranges:
    """Returns the ranges, with those of `tensors` narrowed to the share with the least error over the samples.

    Raises:
        OnnxsmithError: the runtime's error.
    """
    asked = [name for name in tensors if name in found.by_name and found.by_name[name].high > found.by_name[name].low]
    if not asked:
        return found
    total = np.zeros(len(asked) * len(SHARES))
    options = Options(
        optimization="disable", in_order=True
    )  # without optimisations: there are thousands of small nodes, and onnxruntime would try to fuse each
    with runtime.prepare(with_errors(model, {name: found.by_name[name] for name in asked}), options) as session:
        for sample in samples:
            total += np.asarray(session.run(dict(sample.feeds))[_ERRORS], np.float64)
    best = np.argmin(total.reshape(len(asked), len(SHARES)), axis=1)
    narrow = {name: _part(found.by_name[name], SHARES[index]) for name, index in zip(asked, best, strict=True)}
    return replace(found, by_name={**found.by_name, **narrow})


def _part(whole: Range, share: float) -> Range:
    return Range(whole.low * share, whole.high * share)


def with_errors(model: ir.Model, ranges: Mapping[str, Range]) -> ir.Model:
    """Returns a copy of the model whose only output holds the mean squared errors of each tensor, quantised to 8 bits
    with each share of its range."""
    made = cloned(model)
    names = Names(made)
    values = {value.name or "": value for value in made.graph.inputs}
    values |= {value.name or "": value for node in made.graph for value in node.outputs}
    shape = _constant(made, names, "one", np.array([-1], np.int64))
    ends = [
        _error(made, names, values[name], _part(whole, share), shape)
        for name, whole in ranges.items()
        for share in SHARES
    ]
    out = ir.Value(name=names.free(_ERRORS), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([len(ends)]))
    made.graph.append(ir.Node("", "Concat", ends, [ir.AttrInt64("axis", 0)], outputs=[out]))
    made.graph.outputs.clear()
    made.graph.outputs.append(out)
    return made


def _error(model: ir.Model, names: Names, value: ir.Value, part: Range, shape: ir.Value) -> ir.Value:
    low, high = min(part.low, 0.0), max(part.high, 0.0)
    scale = max((high - low) / _STEPS, float(np.finfo(np.float32).tiny))
    step = _constant(model, names, "step", np.float32(scale))
    zero = _constant(model, names, "zero", np.uint8(np.clip(round(-low / scale), 0, _STEPS)))
    narrow = ir.Node("", "QuantizeLinear", [value, step, zero])
    wide = ir.Node("", "DequantizeLinear", [narrow.outputs[0], step, zero])
    apart = ir.Node("", "Sub", [value, wide.outputs[0]])
    square = ir.Node("", "Mul", [apart.outputs[0], apart.outputs[0]])
    mean = ir.Node("", "ReduceMean", [square.outputs[0]], [ir.AttrInt64("keepdims", 0)])
    flat = ir.Node("", "Reshape", [mean.outputs[0], shape])
    nodes = [narrow, wide, apart, square, mean, flat]
    for node in nodes:
        node.outputs[0].name = names.free(f"{value.name}_error")
    behind(model.graph, value, nodes)
    return flat.outputs[0]


def _constant(model: ir.Model, names: Names, wish: str, value: object) -> ir.Value:
    name = names.free(wish)
    array = np.asarray(value)
    tensor = ir.tensor(array, name=name)
    made = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    model.graph.initializers[name] = made
    return made
