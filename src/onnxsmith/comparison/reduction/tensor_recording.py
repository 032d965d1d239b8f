"""Runs a case once and records the tensors of its main graph, so that the graph can be cut anywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.comparison.reduction.case import Case, written
from onnxsmith.comparison.reduction.node_removal import computing, prune, without
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.comparison.reduction.tensor_facts import Kind, Known, kinds
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Outputs

MOST_BYTES = 2**30
"""Most bytes of recorded values. A choice: 1 GiB. Cuts at tensors without a recorded value get made-up values."""


def record(case: Case, bench: Bench, limit: float) -> Known:
    """Records every tensor as far as possible. Stops a run that takes longer than `limit` seconds. Runs onnxruntime
    without optimisation first. If it refuses the model or crashes, runs the reference evaluator, which continues after
    a failing node. If that fails too, runs the longest prefix of the graph that runs."""
    known = Known(values=dict(case.feeds), kinds=kinds(case.model))
    wanted = _affordable(case.model, known.kinds)
    found = _run(case, wanted, bench, limit)
    if found is None:
        found = _prefix(case, known, bench, limit)
    fits = set(wanted)
    known.values.update({name: value for name, value in found.items() if name in fits})
    return known


def _affordable(model: ir.Model, known: dict[str, Kind]) -> list[str]:
    """Returns the names of the main graph's tensors whose values fit into memory, the smallest first if not all do."""
    names = [value.name for node in model.graph for value in node.outputs if value.name]
    sizes = {name: _bytes(known.get(name)) for name in names}
    if sum(sizes.values()) <= MOST_BYTES:
        return names
    fitting: set[str] = set()
    total = 0
    for name in sorted(names, key=sizes.__getitem__):
        total += sizes[name]
        if total > MOST_BYTES:
            break
        fitting.add(name)
    return [name for name in names if name in fitting]


def _bytes(kind: Kind | None) -> int:
    if kind is None or kind[1] is None:
        return 0
    return math.prod(kind[1]) * max(1, kind[0].itemsize if kind[0] != ir.DataType.STRING else 16).__ceil__()


def _run(case: Case, names: Sequence[str], bench: Bench, limit: float) -> Outputs | None:
    """Returns the values of these tensors, or those that the reference evaluator records; None if neither returns
    any."""
    copy = cloned(case.model)
    wanted = set(names)
    while copy.graph.outputs:
        copy.graph.outputs.pop()
    copy.graph.outputs.extend(v for node in copy.graph for v in node.outputs if v.name in wanted)
    try:
        if runtimes.default() == "onnxruntime" and copy.graph.outputs:
            with written(copy) as path:
                return bench.prepare("onnxruntime:disable_all", path, time_limit=limit).run(case.feeds)
    except OnnxsmithError as error:
        if error.problem.id == "runtime/timeout":  # the reference evaluator would be slower still
            return None
    try:
        with written(case.model) as path:
            return bench.tracer().trace(path, case.feeds, time_limit=limit)
    except OnnxsmithError:
        return None


def _prefix(case: Case, known: Known, bench: Bench, limit: float) -> Outputs:
    """Returns the values of the longest prefix that runs, found by halving."""
    places = computing(case.model.graph)
    low, high, best = 0, len(places), Outputs()
    while high - low > 1:
        middle = (low + high) // 2
        part = without(case, places[middle:], known, bypass=False, live=True)
        found = None if part is None else _run(part, _names(part.model), bench, limit)
        if found is None:
            high = middle
        else:
            low, best = middle, found
    return best


def _names(model: ir.Model) -> list[str]:
    return [value.name for node in model.graph for value in node.outputs if value.name]


def pruned(model: ir.Model) -> ir.Model:
    """Returns a copy without the nodes that no output needs."""
    copy = cloned(model)
    prune(copy)
    return copy
