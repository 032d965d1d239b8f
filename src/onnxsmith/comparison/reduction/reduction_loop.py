"""Runs the steps of a reduction in their order, and counts tries and nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.edits import Step
from onnxsmith.comparison.reduction import (
    body_reduction,
    chunk_removal,
    port_removal,
    remainder_simplification,
    size_reduction,
)
from onnxsmith.comparison.reduction.case import Case, fed, written
from onnxsmith.comparison.reduction.checks.base import names
from onnxsmith.comparison.reduction.node_removal import computing, prune, without
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.comparison.reduction.tensor_facts import Kind, Known, kinds
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Outputs

Reducer = Callable[[Case, Known, Oracle], Case]
Shrink = Callable[[Case, Oracle], Case]

CUTS: tuple[tuple[str, Reducer], ...] = (
    ("nodes cut off at the end", chunk_removal.shortest_prefix),
    ("outputs", chunk_removal.outputs),
    ("nodes cut off at the start", chunk_removal.shortest_suffix),
    ("nodes in the middle", chunk_removal.nodes),
    ("outputs", chunk_removal.outputs),
    ("nodes in bodies and functions", chunk_removal.inner_nodes),
)
"""Steps that are repeated until none makes the model smaller."""

EXACT = {"nodes cut off at the end", "nodes cut off at the start", "outputs"}
"""Cuts after which every remaining tensor has the same value as before."""

OPENINGS: tuple[tuple[str, Reducer], ...] = (
    ("functions inlined", body_reduction.inline_functions),
    ("bodies inlined", body_reduction.inline_bodies),
    ("states and results of bodies", port_removal.fewer),
)
"""Steps that make further cuts possible. After a change, the cuts start again."""

SHRINKS: tuple[tuple[str, Shrink], ...] = (
    ("inputs made readable", remainder_simplification.readable),
    ("smaller dimensions", size_reduction.smaller),
    ("attributes left out", remainder_simplification.attributes),
    ("small inputs made constants", remainder_simplification.constants),
    ("descriptions left out", remainder_simplification.descriptions),
)
"""Steps for the remaining model, once no node can be removed."""


class Process:
    """One reduction: the smallest case so far, its recorded tensors, and the steps taken."""

    def __init__(self, case: Case, oracle: Oracle) -> None:
        self.case, self.oracle = case, oracle
        self._total = case.nodes
        self.steps = [Step("the original", self._total, 0)]
        oracle.known_names = names(case.model)
        oracle.told = self._tell
        self._tried = 0
        self._known: Known | None = None

    def run(self) -> Case:
        """Repeats every step as long as it helps. Returns the smallest case."""
        smaller = fed(pruned(self.case.model), self.case.feeds)
        if self.oracle.fails(smaller):
            self._take("nodes that no output needs", smaller, keeps_values=True)
        self._cut()
        while self._open():
            self._cut()
        for name, step in SHRINKS:
            self._take(name, step(self.case, self.oracle), keeps_values=False)
        self._cut()
        return self.case

    def _cut(self) -> None:
        while self.case.nodes > 1:
            before = self.case
            for name, step in CUTS:
                self._take(name, step(self.case, self._values(), self.oracle), keeps_values=name in EXACT)
            if self.case is before:
                return

    def _open(self) -> bool:
        before = self.case
        for name, step in OPENINGS:
            if self.case.nodes > 1:
                self._take(name, step(self.case, self._values(), self.oracle), keeps_values=False)
        return self.case is not before

    def _values(self) -> Known:
        """Returns the recorded tensors of the current case. Records on demand, because running a failing model may be
        slow."""
        if self._known is None:
            bench = self.oracle.bench
            self._known = record(self.case, bench, self.oracle.check.patience() or bench.time_limit)
        return self._known

    def _take(self, name: str, case: Case, *, keeps_values: bool) -> None:
        tried = sum(self.oracle.tries.values())
        if case is not self.case:
            self.case = case
            if not keeps_values:
                self._known = None
        if tried > self._tried:
            self.steps.append(Step(name, case.nodes, tried - self._tried))
        self._tried = tried

    def _tell(self) -> None:
        advance("reduce", self._total - self.case.nodes, self._total)


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
