"""Finds the branches of a model's Ifs that the inputs of a comparison take, and inputs for the other branches.

Inputs that all take one branch show nothing about the other branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.surgery.taken_branches import choices
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.draw_description import SPREADS, Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.probe import Probe

Side = tuple[str, bool]
"""Names a condition, with the value that selects one branch of its If."""
_SEEDS = 12
"""Counts the inputs that are drawn in each spread for a branch that no input takes. A choice: the search runs the
conditions alone."""
_BASES = 4
"""Limits the inputs of the comparison whose values are changed for a branch that no input takes. A choice."""
_FACTORS = (-1.0, 0.0, 64.0, 1 / 64)
_SHIFTS = (8.0, -8.0, 0.5, -0.5)
"""Lists the changes of floats and signed integers: larger or smaller means, sums and maxima, other signs, no values
above a threshold. The reference refuses integers that are no indices."""


class Sides:
    """Finds the branches of the Ifs in the main graph whose conditions are computed in the main graph."""

    def __init__(self, probe: Probe) -> None:
        """Takes the probe that runs the model."""
        model = probe.model
        self._nodes: dict[str, ir.Node] = {}
        for node, condition in choices(model).items():
            if condition.producer() is not None and condition.name:
                self._nodes.setdefault(condition.name, node)
        self._session: Session | None = None
        if self._nodes:
            from onnxsmith.graph.surgery.graph_cuts import cut

            try:
                self._session = probe.prepared(cut(model, (), self._nodes).model)
            except OnnxsmithError:  # the runtime takes the model but not this part of it: the sides stay unknown
                self._nodes = {}

    def completed(
        self, runs: Sequence[Run], generator: Generator, answered: Callable[[Feed], Run | None]
    ) -> tuple[list[Run], tuple[str, ...]]:
        """Returns runs for the branches that none of `runs` takes, and a clause for each branch that still no input
        takes. `answered` runs the reference, or returns None if the reference refuses the input."""
        missing = {(name, side) for name in self._nodes for side in (True, False)}
        for run in runs:
            missing -= self._taken(run.feed)
        found: list[Run] = []
        for feed in self._others(runs, generator) if missing else ():
            if self._taken(feed) & missing and (other := answered(feed)) is not None:
                found.append(other)
                missing -= self._taken(feed)
                if not missing:
                    break
        return found, tuple(self._said(side) for side in sorted(missing))

    def _taken(self, feed: Feed) -> set[Side]:
        if self._session is None:
            return set()
        known = {port.name for port in self._session.signature.inputs}
        try:
            found = self._session.run({name: value for name, value in feed.values.items() if name in known})
        except OnnxsmithError:  # an input that the candidate refuses shows no side
            return set()
        arrays = {name: np.asarray(value) for name, value in found.items()}
        return {(name, bool(array.ravel()[0])) for name, array in arrays.items() if array.size}

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
        for base in bases[:1]:
            for seed in range(_SEEDS):
                for manner in manners:
                    yield generator.feed(base.sizes, seed=seed + 100, manner=manner)

    def _said(self, side: Side) -> str:
        name, value = side
        node = self._nodes[name]
        where = provenance.of(node).source or walk.node_label(node)
        return f"no input took the side of the branch at {where} where its condition is {str(value).lower()}"


def _changed(feed: Feed, how: str, factor: float, shift: float) -> Feed:
    values: dict[str, Any] = {
        name: (value * factor + shift).astype(value.dtype)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fi"
        else value
        for name, value in feed.values.items()
    }
    return replace(feed, label=f"{feed.label}, {how}", values=values)
