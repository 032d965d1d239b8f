"""Explains why nodes are kept: by their errors, and by the ranges of their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.quantisation import NO_KERNEL, KeptNode
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.tensor_paths import places
from onnxsmith.graph.surgery.exposing import Exposing
from onnxsmith.precision.narrowable_nodes import Unit
from onnxsmith.runtimes.base import Runtime, Value
from onnxsmith.verification.explore import Run
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.value_comparison import is_float

_TOGETHER = 32
"""The most tensors exposed in one run. A choice."""


@dataclass
class Range:
    """The range of a tensor's magnitudes over all inputs, without 0, NaN and infinities."""

    name: str
    low: float = np.inf
    high: float = 0.0
    seen: bool = False

    def add(self, value: Value) -> None:
        """Extends the range by the numbers of one run."""
        if not isinstance(value, np.ndarray) or not is_float(value):
            return
        self.seen = True
        sizes = np.abs(widen(value))
        sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
        if sizes.size:
            self.low, self.high = min(self.low, float(sizes.min())), max(self.high, float(sizes.max()))

    def __str__(self) -> str:
        return f"{self.name}: {self.low:.3g} to {self.high:.3g}" if self.high else f"{self.name}: nothing but 0"


@dataclass(frozen=True)
class Reasons:
    """What the search found about kept nodes, by name: the `own` error, the result `without` the node kept, and the
    nodes whose kernels are missing."""

    own: Mapping[str, float]
    without: Mapping[str, str]
    unsupported: Collection[str]


def explained(
    model: ir.Model, kept: Iterable[Unit], to: ir.DataType, runtime: Runtime, runs: Iterable[Run], reasons: Reasons
) -> tuple[KeptNode, ...]:
    """Returns the kept nodes, each with its reason."""
    kept = list(kept)
    nodes = list(walk.nodes(model.graph))
    seen = ranges(model, [nodes[unit.index] for unit in kept if unit.name not in reasons.unsupported], runtime, runs)
    found = []
    for unit in kept:
        node = nodes[unit.index]
        known = provenance.of(node)
        here = [seen[value] for value in (*node.outputs, *node.inputs) if value is not None and value in seen]
        why = NO_KERNEL if unit.name in reasons.unsupported else _why(here, to)
        found.append(
            KeptNode(
                name=unit.name,
                op=unit.op,
                module=known.module,
                source=known.source,
                why=why,
                own=reasons.own.get(unit.name),
                range="; ".join(str(one) for one in here),
                without=reasons.without.get(unit.name, ""),
            )
        )
    return tuple(found)


def ranges(model: ir.Model, nodes: Iterable[ir.Node], runtime: Runtime, runs: Iterable[Run]) -> dict[ir.Value, Range]:
    """Measures the ranges of the float32 tensors that the nodes read and write in the reference. Leaves out tensors
    that cannot be exposed."""
    wanted = {
        value for node in nodes for value in (*node.outputs, *node.inputs)
        if value is not None and value.name and value.dtype == ir.DataType.FLOAT
    }  # fmt: skip
    known = {place.name: place.value for place in places(model) if place.value in wanted}
    found = {value: Range(name) for name, value in known.items()}
    exposing, names, runs = Exposing(model), list(known), list(runs)
    refused = exposing.refusals(names)
    names = [name for name in names if name not in refused]
    for start in range(0, len(names), _TOGETHER):
        exposed = exposing.expose(names[start : start + _TOGETHER])
        try:
            with runtime.prepare(exposed.model) as session:
                for run in runs:
                    outputs = session.run(run.feed.values)
                    for name in exposed.outlets:
                        value = exposed.value(name, outputs, run.feed.values)
                        for one in value if isinstance(value, list) else [value]:
                            found[known[name]].add(one)
        except OnnxsmithError:
            continue
    return {value: one for value, one in found.items() if one.seen}


def _why(seen: Iterable[Range], to: ir.DataType) -> str:
    limits, dtype = limits_of(to), to.name.lower()
    over = [one for one in seen if one.high > limits[1]]
    if over:
        worst = max(over, key=lambda one: one.high)
        return f"overflow: {worst.name} reaches {worst.high:.3g}, but the largest {dtype} is {limits[1]:.5g}"
    under = [one for one in seen if one.low < limits[0] / 2]
    if under:
        worst = min(under, key=lambda one: one.low)
        return f"rounding; {worst.name} has numbers down to {worst.low:.2g}, which become 0 in {dtype}"
    return "rounding"


def limits_of(to: ir.DataType) -> tuple[float, float]:
    """Returns the smallest positive number of a dtype, subnormal numbers included, and its largest number."""
    known: Any = ml_dtypes.finfo(to.numpy())  # type: ignore[no-untyped-call]
    return float(known.smallest_subnormal), float(known.max)
