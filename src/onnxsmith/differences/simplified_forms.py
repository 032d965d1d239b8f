"""Pairs tensors of two models by the simplified forms of both.

Two exporters write one network in different nodes: sizes, splits, casts. Simplified, most of that is the same, and a
tensor keeps its name as long as it is computed. What both simplified forms compute alike, the models themselves compute
alike, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import onnx_ir as ir

from onnxsmith.differences.consistency import judged
from onnxsmith.differences.pairs import Pairs
from onnxsmith.differences.view import View
from onnxsmith.model.graph import walk
from onnxsmith.simplifier.rounds import simplified

Models = tuple[ir.Model, ir.Model]
Paired = tuple[View, View, Pairs]
"""Both main graphs, and the pairs of their nodes."""

_MOST_NODES = 20_000
"""Nodes of both models up to which they are simplified. A choice: some ten seconds of a processor."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Pairs of tensors by what makes them in the simplified forms: `equal` by equal nodes from paired tensors, `other`
    by a pair of nodes that differ, or read what has no partner."""

    equal: dict[ir.Value, ir.Value] = field(default_factory=dict)
    other: dict[ir.Value, ir.Value] = field(default_factory=dict)


class SimplifiedForms:
    """What the simplified forms of two models have in common. They are made when they are first asked for; `pair` pairs
    the nodes of two models."""

    def __init__(self, models: Models, pair: Callable[[Models], Paired]) -> None:
        self._models, self._pair = models, pair

    @cached_property
    def tensors(self) -> Carried:
        """The pairs of tensors, made by nodes of the main graphs. There are none if a model cannot be simplified, or
        both have too many nodes."""
        if sum(map(walk.count_nodes, self._models)) > _MOST_NODES:
            return Carried()
        try:
            forms = simplified(self._models[0])[0], simplified(self._models[1])[0]
        except Exception:  # noqa: BLE001 — a rule may raise anything at nodes that no runtime would take
            return Carried()
        return self._carried(*self._pair(forms))

    def _carried(self, a: View, b: View, pairs: Pairs) -> Carried:
        ours, theirs = ({value.name: value for value in _results(model)} for model in self._models)
        found = Carried()
        loose: set[ir.Value] = set()
        for one, other, is_equal in judged(a, b, pairs):
            named = [
                (ours[x.name], theirs[y.name])
                for x, y in zip(one.outputs, other.outputs, strict=False)
                if x.name in ours and y.name in theirs
            ]
            if is_equal and not any(value in loose for value in one.inputs):
                found.equal.update(named)
            elif len(named) == len(one.outputs):
                found.other.update(named)
            else:  # what follows it is only known beside a tensor that neither model has
                loose.update(one.outputs)
        return found


def _results(model: ir.Model) -> Iterator[ir.Value]:
    for node in model.graph:
        yield from node.outputs
