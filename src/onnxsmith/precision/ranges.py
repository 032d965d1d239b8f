"""The ranges of a model's float tensors over data, measured in the graph: nothing but two numbers for each tensor and
sample leaves the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.graph.fresh import Names
from onnxsmith.model.surgery import opset as opsets
from onnxsmith.precision.data.base import Sample
from onnxsmith.problem import problem
from onnxsmith.runtimes.base import Runtime

_LOW, _HIGH = "lowest", "highest"


@dataclass(frozen=True)
class Range:
    """The least and the greatest value of a tensor; not finite if an element was not."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Ranges:
    """Ranges by tensor, and the number of samples that they were measured on."""

    by_name: Mapping[str, Range]
    samples: int


def measured(model: ir.Model, runtime: Runtime, samples: Iterable[Sample]) -> Ranges:
    """The ranges of the float32 tensors of the main graph, its inputs included.

    Raises:
        OnnxsmithError: `quantize/no-data` without a sample; the runtime's error for an input that it refuses.
    """
    made, names = with_extremes(model)
    if not names:  # a model of float16
        return Ranges({}, _counted(sum(1 for _ in samples)))
    lows = np.full(len(names), np.inf)
    highs = np.full(len(names), -np.inf)
    count = 0
    with runtime.prepare(made) as session:
        for sample in samples:
            outputs = session.run(dict(sample.feeds))
            lows = np.minimum(lows, np.asarray(outputs[_LOW], np.float64))
            highs = np.maximum(highs, np.asarray(outputs[_HIGH], np.float64))
            count += 1
    _counted(count)
    found = {name: Range(float(low), float(high)) for name, low, high in zip(names, lows, highs, strict=True)}
    return Ranges({name: one for name, one in found.items() if not (one.low == np.inf and one.high == -np.inf)}, count)


def _counted(count: int) -> int:
    if not count:
        raise problem("quantize/no-data", "there is no sample to calibrate on", fix="give one: --calibration DATA")
    return count


def with_extremes(model: ir.Model) -> tuple[ir.Model, list[str]]:
    """A copy of the model whose outputs are the least and the greatest value of each float32 tensor, in the order of
    the names."""
    made = cloned(model)
    graph = made.graph
    names = Names(made)
    values = [value for value in graph.inputs if value.name not in graph.initializers]
    values += [value for node in graph for value in node.outputs]
    floats = [value for value in values if value.name and value.dtype == ir.DataType.FLOAT and not _is_empty(value)]
    axes = ir.Value(name=names.free("every_axis"), const_value=ir.tensor(np.array([-1], np.int64)))
    graph.initializers[axes.name or ""] = axes
    new: list[ir.Node] = []
    results = []
    for op, name in (("ReduceMin", _LOW), ("ReduceMax", _HIGH)) if floats else ():
        ends = [_one_number(value, op, axes, names, new) for value in floats]
        out = ir.Value(name=names.free(name), type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([len(floats)]))
        new.append(ir.Node("", "Concat", ends, [ir.AttrInt64("axis", 0)], outputs=[out]))
        results.append(out)
    graph.extend(new)
    graph.outputs.clear()
    graph.outputs.extend(results)
    made.opset_imports[""] = opsets.of(made)
    return made, [value.name or "" for value in floats]


def _one_number(value: ir.Value, op: str, shape: ir.Value, names: Names, new: list[ir.Node]) -> ir.Value:
    extreme = ir.Value(name=names.free(f"{value.name}_{op}"))
    end = ir.Value(name=names.free(f"{value.name}_{op}_1"))
    new.append(ir.Node("", op, [value], [ir.AttrInt64("keepdims", 0)], outputs=[extreme]))
    new.append(ir.Node("", "Reshape", [extreme, shape], outputs=[end]))
    return end


def _is_empty(value: ir.Value) -> bool:
    """Whether the tensor has no element: it has no extremes."""
    return value.shape is not None and any(dim == 0 for dim in value.shape)
