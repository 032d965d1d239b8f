"""Makes the report on the costs of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.model_summary import CostRow, Costs
from onnxsmith.base.words import listed, pasted, several
from onnxsmith.graph.files import closed_axes
from onnxsmith.graph.shapes.dims import MADE
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.verification.inputs.size_proposals import batches
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes
from onnxsmith.viewer.inspection.costs.cost_totals import Group, Path, Stored, Tally, Tallying, grouping, stored
from onnxsmith.viewer.inspection.costs.example_sizes import fitting, fixed_by_weights
from onnxsmith.viewer.inspection.costs.liveness import Liveness
from onnxsmith.viewer.inspection.costs.run_sizes import run_sizes

_MOST_ASSUMPTIONS = 10
"""Limits the assumptions that a report lists. A choice: nobody reads more; the others are counted."""


def costs(
    shaped: ir.Model, given: Mapping[str, int], where: str, declared: Mapping[str, ir.Shape] | None = None
) -> Costs:
    """Counts the costs of one run of a model with inferred shapes, at the `given` sizes of symbols and at example sizes
    of other symbols. `declared` are shapes of outputs, for those that neither inference nor a run shows.

    Calls of local functions are counted one by one. The model is not changed.

    Raises:
        OnnxsmithError: `inspect/unknown-dim` if no dimension of the model has a given name; `inspect/misfit-dim` if the
            model does not run at a given size.
    """
    troubles: list[str | None] = []
    if shaped.functions:
        flat, trouble = inlined(shaped)
        shaped, unshaped = inferred(flat)
        troubles = [trouble, unshaped]
    sizes = Sizes(given, batches(signature(shaped)), _names(shaped))
    for dim in signature(shaped).symbols():
        sizes.value(dim)
    sizes.choose(lambda examples, known: fitting(shaped, examples, known))
    run = run_sizes(shaped, sizes.used())
    sizes.settle(run.sizes)
    for value in shaped.graph.outputs:
        if value.shape is None and value.name not in run.shapes and declared:
            value.shape = declared.get(value.name or "")
    if run.shapes:
        shaped = _with_shapes(shaped, run.shapes)
        if sizes.examples():
            sizes.at_examples()
        troubles.append(f"the shapes of {several(len(run.shapes), 'tensor')} were read from a run at these sizes")
    _refuse_misfit(shaped, sizes, where)
    by, separator, path_of = grouping(node for node in walk.nodes(shaped.graph))
    tally = Tallying(path_of, sizes).tally(shaped.graph)
    weights = stored(shaped, path_of)
    whole, everything = tally.total(), _together(weights)
    peak = Liveness(sizes).peak(shaped.graph)
    macs, activations = whole.macs.amount(sizes), whole.activations.amount(sizes, 8)
    rows = _rows(tally, weights, sizes, separator)
    _refuse_unused(sizes, where)
    return Costs(
        by=by,
        sizes=sizes.used(),
        examples=tuple(sizes.examples()),
        macs=macs,
        counted=tally.counted,
        parameters=everything.parameters,
        weight_bytes=everything.bytes,
        activations=activations,
        peak=peak,
        rows=rows,
        uncounted=_ordered(tally.uncounted),
        unknown_shape=_ordered(tally.unknown_shape),
        without_macs=_ordered(tally.without_macs),
        unsized=tally.unsized,
        assumptions=_assumptions(tally, troubles),
    )


def _with_shapes(shaped: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> ir.Model:
    """Returns a copy in which tensors of the main graph have these shapes."""
    made = cloned(shaped)
    for node in made.graph:
        for value in node.outputs:
            if value.name and value.name in shapes:
                value.shape = ir.Shape(shapes[value.name])
    return made


def _refuse_misfit(shaped: ir.Model, sizes: Sizes, where: str) -> None:
    """Raises if shapes do not fit together at the given sizes, though they do at others.

    Raises:
        OnnxsmithError: `inspect/misfit-dim`.
    """
    asked = {name: size for name, size in sizes.used().items() if name not in sizes.examples()}
    fix = "give sizes that fit together, or leave --dim out"
    found = closed_axes.conflict(shaped, asked) if asked else None
    for name, (size, node) in fixed_by_weights(shaped).items() if asked else ():
        if asked.get(name, size) != size:
            found = f"{node.op_type} {walk.node_label(node)} accepts only {name} = {size}, the size of its weights"
            fix = f"give the size of the weights: --dim {pasted(sizes.told(name))}={size}"
    if found is not None:
        said = ", ".join(f"{sizes.told(name)} = {size}" for name, size in asked.items())
        raise problem("inspect/misfit-dim", f"the model does not run at {said}", where=where, why=found, fix=fix)


def _names(shaped: ir.Model) -> dict[str, str]:
    """Names the symbols that shape inference made after the first tensor that has them: `NonZero_3_dim_1`."""
    found: dict[str, str] = {}
    inner: dict[str, str] = {}
    for value in walk.values(shaped):
        for axis, dim in enumerate(value.shape or ()):
            text = dim.value if isinstance(dim, ir.SymbolicDim) else None
            for name in MADE.findall(text or ""):
                plain = re.sub(r"\W+", "_", value.name or "").strip("_")
                (found if name == text else inner).setdefault(name, f"{plain}_dim_{axis}")
    return {**{name: f"part_of_{told}" for name, told in inner.items()}, **found}


def _refuse_unused(sizes: Sizes, where: str) -> None:
    unused, used = sizes.unused(), listed(sizes.used())
    if unused:
        raise problem(
            "inspect/unknown-dim",
            f"no dimension of the model is called {unused[0]!r}",
            where=where,
            fix=f"its symbolic dimensions are: {used}" if used else "leave --dim out: the model has fixed sizes only",
        )


def _rows(tally: Tally, weights: Mapping[Path, Stored], sizes: Sizes, separator: str) -> tuple[CostRow, ...]:
    """Makes a row for each group and each enclosing group. Inner groups follow their outer group."""
    groups: dict[Path, Group] = {}
    held: dict[Path, Stored] = {}
    inside: dict[Path, dict[Path, None]] = {}
    for path in dict.fromkeys((*tally.groups, *weights)):
        for depth in range(1, len(path) + 1):
            outer = path[:depth]
            inside.setdefault(outer[:-1], {})[outer] = None
            if path in tally.groups:
                groups.setdefault(outer, Group()).merge(tally.groups[path])
            if path in weights:
                _add(held.setdefault(outer, Stored()), weights[path])
    found: list[CostRow] = []

    def visit(path: Path) -> None:
        group, mine = groups.get(path, Group()), held.get(path, Stored())
        found.append(
            CostRow(
                separator.join(path) if separator else path[0],
                len(path) - 1,
                group.nodes,
                group.macs.amount(sizes),
                mine.parameters,
                mine.bytes,
                group.activations.amount(sizes, 8),
            )
        )
        for inner in inside.get(path, ()):
            visit(inner)

    for top in inside.get((), ()):
        visit(top)
    return tuple(found)


def _together(weights: Mapping[Path, Stored]) -> Stored:
    whole = Stored()
    for one in weights.values():
        _add(whole, one)
    return whole


def _add(whole: Stored, one: Stored) -> None:
    whole.parameters += one.parameters
    whole.bytes += one.bytes


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _assumptions(tally: Tally, troubles: Iterable[str | None]) -> tuple[str, ...]:
    found = [*(text for text in troubles if text), *tally.assumptions]
    rest = len(found) - _MOST_ASSUMPTIONS
    return (*found[:_MOST_ASSUMPTIONS], *([f"and {rest:,} more assumptions"] if rest > 0 else []))


@dataclass(frozen=True)
class NodeCost:
    """Holds the costs of one node in one run. `group` is the node's row in the report. `activations` are the bytes of
    its results. `weight_bytes` are the bytes of the stored tensors that this node is the first to read."""

    group: str
    macs: int
    activations: int
    weight_bytes: int


def by_node(shaped: ir.Model, sizes: Mapping[str, int]) -> dict[ir.Node, NodeCost]:
    """Returns the costs of the nodes of a model with inferred shapes, at the `sizes` of a report.

    Nodes of a branch that the report does not count have no costs. Calls of local functions have no costs either,
    because the report counts the nodes of a function for each call.
    """
    names = {node: (str(at),) for at, node in enumerate(walk.all_nodes(shaped))}
    known = Sizes(sizes, batches(signature(shaped)))
    tally = Tallying(names.__getitem__, known).tally(shaped.graph)
    weights = stored(shaped, names.__getitem__)
    _, separator, path_of = grouping(walk.nodes(shaped.graph))
    found: dict[ir.Node, NodeCost] = {}
    for node, name in names.items():
        group, held = tally.groups.get(name), weights.get(name)
        if group is None and held is None:
            continue
        path = path_of(node)
        costs, own = group or Group(), held or Stored()
        found[node] = NodeCost(
            separator.join(path) if separator else path[0] if path else "",
            costs.macs.amount(known).at,
            costs.activations.amount(known, 8).at,
            own.bytes,
        )
    return found
