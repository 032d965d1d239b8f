"""Measures the error of each node if it alone is narrow, in one pass over the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.precision.isolated_layers import BUDGET, forced
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import Units
from onnxsmith.runtimes.base import Feeds, Options, Runtime, Value
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.value_comparison import difference, is_float


def errors(
    model: ir.Model, units: Units, to: ir.DataType, runtime: Runtime, feeds: Feeds, budget: int = BUDGET
) -> dict[str, float]:
    """Returns the own error of each node: the largest difference of its result, relative to the scale, if it reads the
    reference's rounded values. The error is infinite if only one side is finite. A node in a body has the error of the
    node that holds the body. Nodes whose values cannot be exposed are left out.

    Raises:
        OnnxsmithError: the runtime's error for a model that is cut.
    """
    variant = narrowed(model, units.units, to, rounded=True)
    options = Options()
    with (
        OnnxTap(model, runtime.preparer(), options, "") as reference,
        OnnxTap(variant, runtime.preparer(), options, "") as candidate,
    ):
        names = [name for name in reference.outline.tensors() if name in candidate.outline.maker]
        cuts = frozenset(names)
        values = forced(reference, candidate, feeds, names, cuts, partial(_rounded, to=to), budget)
        own = {name: _error(ours, theirs) for name, ours, theirs in values}
    return _by_unit(model, units, own)


def _by_unit(model: ir.Model, units: Units, own: Mapping[str, float]) -> dict[str, float]:
    nodes = list(walk.nodes(model.graph))
    holders = {inner: node for node in model.graph for inner in walk.inside(node)}
    found = {}
    for unit in units.units:
        node = holders.get(nodes[unit.index], nodes[unit.index])
        known = [own[value.name or ""] for value in node.outputs if value.name in own]
        if known:
            found[unit.name] = max(known)
    return found


def _rounded(value: Value, to: ir.DataType) -> Value:
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    with np.errstate(over="ignore"):
        return value.astype(to.numpy()).astype(np.float32)


def _error(reference: Value, candidate: Value) -> float:
    found = difference(reference, candidate, math.inf, math.inf)
    if found.reason and isinstance(reference, np.ndarray) and is_float(reference):
        return math.inf
    return found.worst_rel
