"""Pairs tensors of two models by the simplified forms of both.

Two exporters write the same network with different nodes: sizes, splits, casts. Simplifying removes most of these
differences, and a tensor keeps its name as long as it is computed. Tensors that both simplified forms compute alike are
also equal in the models themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.comparison.graphs.consistency import judged
from onnxsmith.comparison.graphs.pairing_view import View
from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.graph.shapes.symbolic_inference import infer_in_place
from onnxsmith.graph.structure import walk
from onnxsmith.optimizer.rules.base import Exactness, Rule
from onnxsmith.optimizer.simplification_rounds import simplified

Models = tuple[ir.Model, ir.Model]
Paired = tuple[View, View, Pairs]
"""Both main graphs, and the pairs of their nodes."""

_MOST_NODES = 20_000
"""How many nodes both models may have to be simplified. A choice: about ten seconds of a processor."""
_FEW = 200
"""Models are simplified only if more than one in so many nodes has no partner. A choice: edits of large models stay as
quick to compare as before."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Pairs of tensors, by their nodes in the simplified forms. `equal` are results of equal nodes with paired
    operands. `other` are results of paired nodes that differ, or that read a tensor without a partner."""

    equal: dict[ir.Value, ir.Value] = field(default_factory=dict)
    other: dict[ir.Value, ir.Value] = field(default_factory=dict)


_NAMED = frozenset(
    {
        "fuse/batchnorm-conv",
        "fuse/conv-batchnorm",
        "fuse/gelu",
        "fuse/gemm-batchnorm",
        "fuse/hard-sigmoid",
        "fuse/hardswish",
        "fuse/layer-norm",
        "fuse/mish",
        "fuse/reciprocal-div",
        "fuse/rms-norm",
        "fuse/swish",
    }
)
"""Rules that write one operator where some exporters write several, or another one. All other rules in use keep every
value; rules that scale weights or merge products would leave few tensors to compare."""


@lru_cache(maxsize=1)
def _unsuitable() -> tuple[str, ...]:
    rules = rooms.members("onnxsmith.optimizer.rules", Rule)
    return tuple(id_ for id_, rule in rules.items() if rule.exactness is Exactness.REASSOCIATES and id_ not in _NAMED)


class SimplifiedForms:
    """The pairs of tensors that the simplified forms of two models provide. They are made on first use. `pair` pairs
    the nodes of two models."""

    def __init__(self, models: Models, pair: Callable[[Models], Paired]) -> None:
        self._models, self._pair = models, pair

    def are_worth_it(self, paired: int) -> bool:
        """Whether enough nodes still lack a partner, and both models are small enough."""
        counts = [walk.count_nodes(model) for model in self._models]
        return sum(counts) <= _MOST_NODES and max(counts) - paired > max(counts) // _FEW

    @cached_property
    def tensors(self) -> Carried:
        """The pairs of tensors that nodes of the main graphs compute. Empty if a model cannot be simplified."""
        try:
            skip = _unsuitable()
            forms = simplified(self._models[0], skip=skip)[0], simplified(self._models[1], skip=skip)[0]
        except Exception:  # noqa: BLE001 — a rule may raise anything at nodes that no runtime would take
            return Carried()
        a, b, pairs = self._pair(forms)
        return self._carried(a, b, pairs, _with_sizes(forms, pairs))

    def _carried(self, a: View, b: View, pairs: Pairs, symbols: frozenset[str]) -> Carried:
        ours, theirs = ({value.name: value for value in _results(model)} for model in self._models)
        found = Carried()
        loose: set[ir.Value] = set()
        for one, other, is_equal in judged(a, b, pairs, symbols):
            named = [
                (ours[x.name], theirs[y.name])
                for x, y in zip(one.outputs, other.outputs, strict=False)
                if x.name in ours and y.name in theirs
            ]
            if is_equal and not any(value in loose for value in one.inputs):
                found.equal.update(named)
            elif len(named) == len(one.outputs):
                found.other.update(named)
            else:  # tensors computed from it are only equal relative to a tensor that neither model has
                loose.update(one.outputs)
        return found


def _results(model: ir.Model) -> Iterator[ir.Value]:
    for node in model.graph:
        yield from node.outputs


def _with_sizes(models: Models, pairs: Pairs) -> frozenset[str]:
    """Infers the shapes of both models from inputs with common dimension names. Returns these names. The second model
    gets the names of the first."""
    symbols: set[str] = set()
    for value in models[0].graph.inputs:
        other = pairs.values.get(value)
        if value.shape is None or other is None or other.shape is None or len(value.shape) != len(other.shape):
            continue
        dims = [b if isinstance(b, int) else a for a, b in zip(value.shape, other.shape, strict=True)]
        other.shape = ir.Shape(dims)
        symbols.update(str(dim.value) for dim in value.shape if isinstance(dim, ir.SymbolicDim) and dim.value)
    for model in models:
        for node in walk.all_nodes(model):
            for result in node.outputs:
                result.shape = None  # what a file declares may be wrong, or named otherwise
        infer_in_place(model)
    return frozenset(symbols)
