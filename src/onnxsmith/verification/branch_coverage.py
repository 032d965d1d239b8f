"""Finds the branches of Ifs, the bodies of Loops and the sides of Wheres that the inputs of a comparison take, and
inputs for the others. A Where counts if its condition has one element, as an `if` of a module may become a Where.

Inputs that all take one branch show nothing about the other branch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.draw_description import SPREADS, Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.probe import Probe

Condition = tuple[str, bool]
"""Names a condition, with one of its values."""


@dataclass(frozen=True, order=True)
class Side:
    """Names a branch of an If, or whether a Loop is entered: the condition's name and its value. The node lies in
    branches that are taken if all conditions of `within` have their values."""

    condition: str
    value: bool
    within: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Untaken:
    """Holds the clause on a branch that no input takes, and its graph; None for a loop that is always entered."""

    clause: str
    graph: ir.Graph | None


_SEEDS = 12
"""Counts the inputs that are drawn in each spread for a branch that no input takes. A choice: the search runs the
conditions alone."""
_BASES = 4
"""Limits the inputs of the comparison whose values are changed for a branch that no input takes. A choice."""
_COMBINATIONS = 64
"""Limits the combinations of values of inputs that decide branches. A choice: six bools."""
_FACTORS = (-1.0, 0.0, 64.0, 1 / 64)
_SHIFTS = (8.0, -8.0, 0.5, -0.5)
"""Lists the changes of floats: larger or smaller means, sums and maxima, other signs, no values above a threshold.
Signed integers get the other sign, or 0. The reference refuses integers that are no indices."""


class Sides:
    """Finds the sides of Ifs, Loops and Wheres whose conditions are graph inputs, or are computed in the main graph."""

    def __init__(self, probe: Probe) -> None:
        """Takes the probe that runs the model."""
        model = probe.model
        found = list(_decisions(model, model.graph, ()))
        self._inputs = {one.condition.name or "" for one in found if one.condition.is_graph_input()}
        computed = {one.condition.name or "": one.condition for one in found if one.condition.producer() is not None}
        self._session: Session | None = None
        if computed:
            from onnxsmith.graph.surgery.graph_cuts import cut

            try:
                self._session = probe.prepared(cut(model, (), list(computed)).model)
            except OnnxsmithError:  # the runtime takes the model but not this part of it: the sides stay unknown
                computed = {}
        known = self._inputs | computed.keys()
        self._nodes: dict[Side, ir.Node] = {}
        for one in found:
            if {one.condition.name, *(name for name, _ in one.within)} <= known:
                for value in (True, False):
                    self._nodes.setdefault(Side(one.condition.name or "", value, one.within), one.node)

    def completed(
        self, runs: Sequence[Run], generator: Generator, answered: Callable[[Feed], Run | None]
    ) -> tuple[list[Run], tuple[Untaken, ...]]:
        """Returns runs for the branches that none of `runs` takes, and the branches that still no input takes.
        `answered` runs the reference, or returns None if the reference refuses the input."""
        missing = set(self._nodes)
        for run in runs:
            missing -= self._taken(run.feed)
        found: list[Run] = []
        for feed in self._others(runs, generator) if missing else ():
            if self._taken(feed) & missing and (other := answered(feed)) is not None:
                found.append(other)
                missing -= self._taken(feed)
                if not missing:
                    break
        return found, tuple(Untaken(self._said(side), self._body(side)) for side in sorted(missing))

    def _taken(self, feed: Feed) -> set[Side]:
        found: dict[str, Any] = {name: feed.values[name] for name in self._inputs if name in feed.values}
        if self._session is not None:
            known = {port.name for port in self._session.signature.inputs}
            try:
                found |= self._session.run({name: value for name, value in feed.values.items() if name in known})
            except OnnxsmithError:  # an input that the candidate refuses shows no side
                return set()
        arrays = {name: np.asarray(value) for name, value in found.items()}
        values = {(name, bool(array.ravel()[0])) for name, array in arrays.items() if array.size}
        # Of a Where whose condition has several elements, both sides count as taken.
        values |= {(name, value) for name, array in arrays.items() for value in (True, False) if array.size > 1}
        return {side for side in self._nodes if {(side.condition, side.value), *side.within} <= values}

    def _others(self, runs: Sequence[Run], generator: Generator) -> Iterator[Feed]:
        """Yields feeds with other values at the sizes of the runs."""
        bases = [run.feed for run in runs if not run.is_empty][:_BASES]
        for base in bases:
            for factor in _FACTORS:
                yield _changed(base, f"times {factor:g}", factor, 0.0)
            for shift in _SHIFTS:
                yield _changed(base, f"plus {shift:g}", 1.0, shift)
        manners = [Manner(spread=spread) for spread in (*SPREADS, "large", "small")]
        manners += [Manner(fill=fill) for fill in (0, 1)]
        choices = generator.choices()
        for base in bases[:1]:
            for values in itertools.islice(itertools.product(*choices.values()), _COMBINATIONS):
                yield generator.feed(base.sizes, seed=100, chosen=dict(zip(choices, values, strict=True)))
            for seed in range(_SEEDS):
                for manner in manners:
                    yield generator.feed(base.sizes, seed=seed + 100, manner=manner)

    def _body(self, side: Side) -> ir.Graph | None:
        node = self._nodes[side]
        if node.op_type != "If":
            name = "body" if side.value and node.op_type == "Loop" else ""
        else:
            name = "then_branch" if side.value else "else_branch"
        attribute = node.attributes.get(name)
        return None if attribute is None else attribute.as_graph()

    def _said(self, side: Side) -> str:
        node = self._nodes[side]
        where = provenance.of(node).source or walk.node_label(node)
        if node.op_type == "Loop":
            return f"no input {'entered' if side.value else 'passed by'} the loop at {where}"
        return f"no input took the side of the branch at {where} where its condition is {str(side.value).lower()}"


@dataclass(frozen=True)
class _Decision:
    """Holds a node with the condition that decides which of its bodies runs. `within` are the conditions of the
    branches in which the node lies."""

    node: ir.Node
    condition: ir.Value
    within: tuple[Condition, ...]


_PLACES = {"If": 0, "Loop": 1, "Where": 0}
"""Maps operators to the place of the operand that decides which side of them counts."""


def _decisions(model: ir.Model, graph: ir.Graph, within: tuple[Condition, ...]) -> Iterator[_Decision]:
    """Yields the Ifs, Loops and Wheres of a graph and of the branches inside it, except those whose condition is
    constant or is computed inside a branch or a body. Bodies of loops are left out: their conditions change from turn
    to turn. A Where is left out if its condition has several elements, or follows from shapes alone."""
    for node in graph:
        if node.op_type not in _PLACES or node.domain not in ("", "ai.onnx"):
            continue
        place = _PLACES[node.op_type]
        condition = node.inputs[place] if len(node.inputs) > place else None
        is_outer = condition is not None and condition.graph is model.graph
        if condition is None or not condition.name or not is_outer or facts.constant(condition) is not None:
            continue
        if node.op_type == "Where" and (_has_several(condition) or not _reads_values(condition)):
            continue
        yield _Decision(node, condition, within)
        for name, value in (("then_branch", True), ("else_branch", False)) if node.op_type == "If" else ():
            attribute = node.attributes.get(name)
            if attribute is not None:
                yield from _decisions(model, attribute.as_graph(), (*within, (condition.name, value)))


def _has_several(condition: ir.Value) -> bool:
    """Whether a condition has more than one element. Without a known shape, the runs decide."""
    return condition.shape is not None and any(size != 1 for size in condition.shape)


def _reads_values(condition: ir.Value) -> bool:
    """Whether values of graph inputs decide a condition, and not only their shapes."""
    queue, seen = [condition], {condition}
    while queue:
        value = queue.pop()
        if value.is_graph_input():
            return True
        node = value.producer()
        if node is None or node.op_type in ("Shape", "Size"):
            continue
        for read in node.inputs:
            if read is not None and read not in seen:
                seen.add(read)
                queue.append(read)
    return False


def _changed(feed: Feed, how: str, factor: float, shift: float) -> Feed:
    kinds = "fi" if factor <= 0 else "f"  # an integer of another size may be a count of turns, which overflows
    values: dict[str, Any] = {
        name: _scaled(value, factor, shift) if isinstance(value, np.ndarray) and value.dtype.kind in kinds else value
        for name, value in feed.values.items()
    }
    return replace(feed, label=f"{feed.label}, {how}", values=values)


def _scaled(value: np.ndarray, factor: float, shift: float) -> np.ndarray:
    with np.errstate(over="ignore"):  # large values of a narrow float become infinite, which decides a branch, too
        return np.asarray(value * factor + shift if factor else np.full_like(value, shift)).astype(value.dtype)
