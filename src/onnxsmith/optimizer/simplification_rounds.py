"""Simplifies a graph in rounds, until a round changes nothing. Does not verify the result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.passes.base import Pass
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.declared_dims import agree
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure import versions, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.value_replacement import DECLARED
from onnxsmith.optimizer import branches, engine, folding, growth, pipeline, rule_selection
from onnxsmith.optimizer.fold_plan import SLACK
from onnxsmith.optimizer.folding import Folding
from onnxsmith.optimizer.journal import Journal, Place
from onnxsmith.optimizer.kernels import Kernels
from onnxsmith.optimizer.rule_selection import Chosen
from onnxsmith.optimizer.rules.base import Rule
from onnxsmith.optimizer.simplification_state import State
from onnxsmith.verification.intermediate_declarations import contradicts, is_wrong, sizes_to_try

_MOST_ROUNDS = 30
"""The most rounds. A choice: a limit in case two rules undo each other."""
_SMALL_SLACK = 256
"""The least bytes of slack, even for the smallest model. A choice: a few small constants."""
_NODE_BYTES = 100
"""Bytes of a node in a file. An estimate."""
_LEAST_NODE_BYTES = 16
"""The least bytes of a node in a file, with short names: its operator, an input, an output, the lengths."""


def simplified(
    model: ir.Model,
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    exactness: str | None = None,
    inline_functions: bool = False,
    contrib: bool = False,
    target: str = "",
    max_growth: float | None = None,
    slack: int = SLACK,
    limit: float = math.inf,
    switched_off: frozenset[Place] = frozenset(),
    kernels: Kernels | None = None,
    in_place: bool = False,
) -> tuple[ir.Model, Simplification]:
    """Returns a simplified copy of `model` (weights shared), or `model` itself simplified `in_place`, and the report
    part. The result is not verified.

    `only` and `skip` take ids of rules and passes, or patterns such as `fuse/*`. `exactness` is the least exact kind of
    rewrite that may fire: `bitwise`, `value` or `reassociates`; None means `reassociates`, except before quantisers.
    `contrib` enables the rules that make operators of a runtime, `target` the rules that were measured faster on that
    target. With `kernels` of a runtime, no rule makes an operator that this runtime would have to unfold. Folded
    constants may enlarge the file by a share of `max_growth` (None: see `growth.foldable`), and by `slack` bytes for
    each folded group of nodes. At most `limit` rewrites are made, and none that is `switched_off`.

    Raises:
        OnnxsmithError: `simplify/unknown-rule`; `simplify/unknown-exactness`.
    """
    chosen = rule_selection.chosen(
        rooms.members("onnxsmith.optimizer.rules", Rule), only, skip, exactness, contrib=contrib, target=target
    )
    with no_collection():
        copy = model if in_place else cloned(model)
        _mark_flat(copy)
        before = _Before.of(copy)
        if inline_functions:
            _inline(copy)
        facts.spread_opsets(copy)
        journal = Journal(limit, switched_off)
        _passes(copy, journal, pipeline.BEFORE, chosen)
        state = State(copy, Inference(copy), journal, kernels=kernels)
        misdeclared = before.misdeclared(copy)
        folding_ = Folding(
            state,
            budget=growth.foldable(before.nbytes, max_growth),
            slack=_slack(slack, before.nbytes),
            spare_narrow=not max_growth,
        )
        rounds = _until_still(state, chosen, folding_)
        _contrib(state, chosen)
        folding_.finish()
        facts.forget(copy)
        before.restore_shapes(copy)
        versions.drop_unused_imports(copy)
        copy.graph.meta.pop(walk.FLAT, None)
    part = Simplification(
        nodes_before=before.nodes,
        nodes_after=walk.count_nodes(copy),
        constants_before=before.constants,
        constants_after=walk.count_constants(copy),
        initializers_before=before.initializers,
        initializers_after=sum(1 for _ in walk.initializers(copy)),
        fired=tuple(state.journal.fired),
        refused=state.journal.refused,
        rounds=rounds,
        notes=(*state.inference.notes, *folding_.notes(before.nbytes, before.least_nbytes)),
        misdeclared=misdeclared,
    )
    return copy, part


def _until_still(state: State, chosen: Chosen, folding_: Folding) -> int:
    """Repeats rounds until a round changes nothing, and infers all shapes again between rounds. Returns the number of
    rounds."""
    for number in range(1, _MOST_ROUNDS + 1):
        state.journal.begin_round()
        with state.inference.assumed():
            still = not _round(state, chosen, folding_)
        if still:
            return number
        notes = state.inference.notes
        state.inference = Inference(state.model, state.inference)
        state.inference.notes = notes
    state.inference.notes.append(f"stopped after {_MOST_ROUNDS} rounds, though the last round still changed something")
    return _MOST_ROUNDS


def _contrib(state: State, chosen: Chosen) -> None:
    """Runs the rules that make operators of a runtime, until nothing changes. Does not infer shapes again: inference
    does not know these operators, and each result has the shape of the value that it replaces."""
    if not chosen.contrib:
        return
    with state.inference.assumed():
        while engine.apply(state, chosen.contrib, spare_quantisers=chosen.spare_quantisers):
            _passes(state.model, state.journal, pipeline.AFTER, chosen)
    state.journal.forget_places_but({walk.node_label(node) for node in walk.all_nodes(state.model)})


def _round(state: State, chosen: Chosen, folding_: Folding) -> bool:
    """Runs everything once, in the order of `pipeline.py`; returns whether anything changed."""
    changed = folding.RULE in chosen.steps and folding_.run()
    changed |= branches.RULE in chosen.steps and branches.flatten(state)
    if changed:
        # folding and flattening leave unused nodes behind
        _passes(state.model, state.journal, pipeline.BEFORE, chosen)
    state.refresh()
    changed |= engine.apply(state, chosen.rules, spare_quantisers=chosen.spare_quantisers)
    state.stale.clear()  # the next round infers all shapes again
    return _passes(state.model, state.journal, pipeline.AFTER, chosen) or changed


def _passes(model: ir.Model, journal: Journal, passes: Iterable[tuple[str, Pass]], chosen: Chosen) -> bool:
    changed = False
    for id_, one in passes:
        if not id_:
            result = one.run(model)
            for where in result.where:
                journal.tidy(one.title, where)
        elif id_ in chosen.steps:
            result = one.run(model, lambda where, id_=id_: journal.fire(id_, where))  # type: ignore[misc]
        else:
            continue
        changed |= result.changed
    return changed


def _mark_flat(model: ir.Model) -> None:
    """Marks a graph without branches, so that walks need not look for them."""
    if next(walk.nested(model.graph), None) is None:
        model.graph.meta[walk.FLAT] = True


def _inline(copy: ir.Model) -> None:
    from onnx_ir.passes.common import InlinePass

    from onnxsmith.graph.surgery.inlining import name_outputs

    copy.graph.meta.pop(walk.FLAT, None)  # a function may have branches
    name_outputs(copy, copy.functions)
    InlinePass()(copy)
    _mark_flat(copy)


def _slack(most: int, nbytes: int) -> int:
    """Returns the bytes by which a group of connected nodes may grow: less in a small model."""
    return min(most, max(_SMALL_SLACK, nbytes // 64))  # 1/64 of the model is a choice


@dataclass(frozen=True)
class _Before:
    """The size and the declared shapes and types of a model before it is changed."""

    nodes: int
    constants: int
    initializers: int
    nbytes: int
    least_nbytes: int
    ports: tuple[tuple[ir.Shape | None, ir.TypeProtocol | None], ...]
    intermediates: list[tuple[ir.Value, ir.TypeProtocol | None]]

    @classmethod
    def of(cls, model: ir.Model) -> _Before:
        """Measures a model, and notes each value's declared shape in its `meta`."""
        results = [value for node in walk.all_nodes(model) for value in node.outputs]
        for value in (*results, *(value for graph in walk.nested(model.graph) for value in graph.inputs)):
            if value.shape is not None:
                value.meta[DECLARED] = value.shape
        nodes = walk.count_nodes(model)
        ports = (*model.graph.inputs, *model.graph.outputs)
        weights = sum(tensor.nbytes for tensor in walk.tensors(model))
        return cls(
            nodes,
            walk.count_constants(model),
            sum(1 for _ in walk.initializers(model)),
            weights + _NODE_BYTES * nodes,
            weights + _LEAST_NODE_BYTES * nodes,
            tuple((port.shape.copy() if port.shape is not None else None, port.type) for port in ports),
            [(value, value.type) for value in results if value.name and not value.is_graph_output()],
        )

    def misdeclared(self, model: ir.Model) -> int:
        """Counts the intermediate values that were declared with another shape or dtype than inference just found."""
        sizes = sizes_to_try(model)
        return sum(is_wrong(value.meta.get(DECLARED), type_, value, sizes) for value, type_ in self.intermediates)

    def restore_shapes(self, model: ir.Model) -> None:
        """Restores the declared shapes of graph inputs and outputs, which are the model's interface. Other values keep
        a declared shape unless inference contradicts it.

        Inferred shapes are not written: they would enlarge the file, and any reader can infer them again.
        """
        for value, (shape, type_) in zip((*model.graph.inputs, *model.graph.outputs), self.ports, strict=True):
            value.shape, value.type = shape, type_
        outputs, sizes = set(model.graph.outputs), sizes_to_try(model)
        for node in walk.all_nodes(model):
            for value in node.outputs:
                if value not in outputs:
                    _restore(value, sizes)
        for graph in walk.nested(model.graph):
            for value in graph.inputs:
                _restore(value, sizes)
        for value in walk.initializers(model):
            if not value.is_graph_input() and not value.is_graph_output():
                value.shape = value.type = None  # the tensor has both; otherwise they would be written twice


def _restore(value: ir.Value, sizes: Sequence[Mapping[str, int]]) -> None:
    declared = value.meta.pop(DECLARED, None)
    found = value.shape
    if (
        declared is not None
        and found is not None
        and (not agree(declared, found) or contradicts(declared, found, sizes))
    ):
        declared = None
    value.shape = declared
    if value.shape is None and not value.is_graph_output() and not value.is_graph_input():
        value.type = None
