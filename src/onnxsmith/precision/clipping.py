"""Narrows the ranges for 8 bits to those with the least mean squared error, measured in the graph.

A range that includes the rarest value has coarse steps for all other values. For each tensor several shares of its
range are tried on data, and the share with the least quantisation error is taken (Nagel et al., "A White Paper on
Neural Network Quantization", arXiv 2106.08295, section 3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.ranges import Range, Ranges, behind
from onnxsmith.runtimes.base import Options, Runtime

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
