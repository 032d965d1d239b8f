"""Checks whether the inputs reach and show the known differences between two models.

Suppose that two files hold a weight of the same name with different values, and that their outputs agree. Then either
the values mean the same, or no input reached the differing places, such as a row of a table that was not read. So the
candidate is run with the reference's values in these places. If the check then sees a difference, the inputs reached
the places, and the outputs agreed nevertheless. If the check sees no difference on any input, the comparison says
nothing about these places.

Suppose that two nodes with the same name are not identical and the outputs agree. Then either the nodes mean the same,
or the check does not see how they differ. So each model also runs the other model's node on the same tensors. If the
results differ, the model is run with the other's node in place of its own. If the check then sees a difference, the
inputs reach the node, and another change makes up for it. If the check sees no difference on any input, the outputs say
nothing about the node. Nodes that give equal results on the same tensors are run alone, on other values and at other
sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import first_few
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import same_name_nodes
from onnxsmith.graph.surgery.same_name_nodes import Doubled, Pair
from onnxsmith.graph.surgery.weights_as_inputs import Weight, single_numbers
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.branch_coverage import Untaken
from onnxsmith.verification.detection_power import Check
from onnxsmith.verification.explore import Explorer, Plan, Run, answer
from onnxsmith.verification.free_values import NONE, Free
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.inputs.size_constraints import numbers
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.probe import Array, Probe
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.value_comparison import difference, unit

Tells = Callable[[Run, Outputs, Outputs], bool]
_MOST_WEIGHTS = 24
"""Limits the weights that are tried, evenly chosen. A choice: each weight needs several runs of the model."""
_FEW_UNITS = 64
"""Limits the difference of equal weights that were computed in different ways, in units in the last place. A choice."""
_NUMBERS = 6
"""Limits the single numbers that are tried. A choice: each number needs a session."""
_ROWS = 8
"""Limits the rows of a weight that are replaced one by one, if at most half of its rows differ. A choice."""


def unseen_weights(reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check) -> str:
    """Names the differences of the two files that no input shows to the `check`; "" if there are none."""
    if not (reference.start() and candidate.start()):
        return ""
    ours = {weight.name: weight for weight in reference.weights}
    differing = [
        (weight, other)
        for weight in candidate.weights
        if (other := ours.get(weight.name)) is not None and _is_other(other.tensor, weight.tensor)
    ]
    step = max(1, -(-len(differing) // _MOST_WEIGHTS))
    hidden = [said for pair in differing[::step] if (said := _unseen_weight(*pair, candidate, runs, check))]
    hidden += _unseen_numbers(reference, candidate, runs, check)
    return first_few(hidden, 1, "; ")


def unseen_in_branches(candidate: ir.Model, untaken: Sequence[Untaken]) -> str:
    """Names the constants of the reference's branches that no input takes, and that have other values in the candidate;
    "" if there are none. Constants of the same name mean the same."""
    named = {name: tensor for branch in untaken if branch.graph for name, tensor in _constants(branch.graph)}
    if not named:
        return ""
    others = {value.name: const_tensor(value) for value in walk.values(candidate) if value.name in named}
    hidden = [name for name, tensor in named.items() if _is_other(tensor, others.get(name))]
    if not hidden:
        return ""
    has = "has" if len(hidden) == 1 else "have"
    return f"{first_few(list(map(repr, hidden)), 3)} {has} different values in a branch that no input took"


def _constants(graph: ir.Graph) -> Iterator[tuple[str, ir.TensorProtocol]]:
    """Yields the constants that the nodes of a branch read, by name."""
    for node in walk.nodes(graph):
        for value in (*node.inputs, *node.outputs):
            if value is not None and value.name and (tensor := const_tensor(value)) is not None:
                yield value.name, tensor


def _is_other(ours: ir.TensorProtocol, theirs: ir.TensorProtocol | None) -> bool:
    if theirs is None or ours is theirs or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    own, wanted = np.asarray(theirs.numpy()), np.asarray(ours.numpy())
    if own.dtype.kind in "OUS":
        return bool((own != wanted).any())
    return bool(places(own, wanted).any())


def _unseen_numbers(reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check) -> list[str]:
    """Names the differences of single numbers that are no weights: factors, and zero points of quantisers. The numbers
    are replaced one by one, because two of them may cancel each other."""
    ours = single_numbers(reference.model)
    values = {
        name: ours[name]
        for name, own in single_numbers(candidate.model).items()
        if name in ours and own.dtype == ours[name].dtype and places(own.numpy(), ours[name].numpy()).any()
    }
    hidden = [
        name for name in list(values)[:_NUMBERS] if not _is_number_seen(candidate, {name: values[name]}, runs, check)
    ]
    return [f"{', '.join(map(repr, hidden[:3]))} differ, but no input shows this"] if hidden else []


def _is_number_seen(
    candidate: Probe, values: Mapping[str, ir.TensorProtocol], runs: Sequence[Run], check: Check
) -> bool:
    """Whether the check sees other values of these numbers. Also True if the candidate does not run with these
    values."""
    with candidate.with_numbers(values) as changed:
        for run in runs:
            usual, moved = candidate.plain(run.feed), changed.plain(run.feed)
            if moved is None or (usual is not None and check.sees(run, usual, moved)):
                return True
    return False


def places(own: Array, wanted: Array) -> Array:
    """Returns a mask of the places where two constants differ by more than the rounding of two ways of computing
    them."""
    a, b = widen(own), widen(wanted)
    finite = b[np.isfinite(b)]
    least = _FEW_UNITS * unit(own) * (rms(finite) if finite.size else 0.0)
    alike = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return np.asarray(~(alike | (np.abs(a - b) <= least)))


def _unseen_weight(weight: Weight, other: Weight, probe: Probe, runs: Sequence[Run], check: Check) -> str:
    """Returns a sentence if the reference's values of a weight change nothing that the check sees; else ""."""
    own, wanted = np.asarray(weight.tensor.numpy()), np.asarray(other.tensor.numpy())
    apart = places(own, wanted)
    changes = list(_changes(own, wanted, apart))
    still = sum(not _is_seen_with(probe, runs, weight, changed, check.sees) for changed in changes)
    # If any other values have no effect either, the weight is unused and needs no warning.
    if not still or not _is_seen_with(probe, runs, weight, np.flip(own) + own.dtype.type(1), _apart):
        return ""
    part = "" if still == len(changes) else f", {still} of {len(changes)} rows that were tried"
    return f"weight {weight.name!r} differs in {int(apart.sum())} elements, but no input shows this{part}"


def _changes(own: Array, wanted: Array, apart: Array) -> Iterator[Array]:
    """Yields the weight with the reference's values. If only some rows differ, yields it with one row changed at a
    time."""
    rows = np.flatnonzero(apart.reshape(len(own), -1).any(axis=1)) if own.ndim > 1 else np.zeros(0, int)
    if not rows.size or 2 * rows.size > len(own):
        yield wanted
        return
    for row in rows[:: -(-rows.size // _ROWS)]:
        changed = own.copy()
        changed[row] = wanted[row]
        yield changed


def _is_seen_with(probe: Probe, runs: Sequence[Run], weight: Weight, value: Array, tells: Tells) -> bool:
    """Whether another value of the weight, on any input, gives outputs that `tells` distinguishes from the usual
    outputs."""
    for run in runs:
        usual, moved = probe.plain(run.feed), probe.replaced(run.feed, weight, value)
        if usual is not None and moved is not None and tells(run, usual, moved):
            return True
    return False


def _apart(_: Run, usual: Outputs, moved: Outputs) -> bool:
    for name, value in usual.items():
        found = difference(value, moved[name], 0.0)
        if found.reason or found.worst_abs or found.unequal:
            return True
    return False


_MOST = 32
"""Limits the pairs of nodes that are compared, evenly chosen. A choice: the outputs of all pairs stay in memory during
a run."""
_SESSIONS = 8
"""Limits the pairs for which a separate model is prepared. A choice: each model needs a session."""
_UNITS = 64
"""Limits the difference of two ways to compute one tensor, in units in the last place at the tensor's scale. A
choice."""

Read = dict[str, tuple[ir.DataType, tuple[int | str, ...]]]


def unseen_nodes(
    reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check, free: Free = NONE
) -> tuple[str, ...]:
    """Returns sentences about nodes that compute differently although no input shows this to the `check`. The nodes of
    outputs that are `free` may differ."""
    models = {probe: probe.model for probe in (candidate, reference)}
    in_candidate, in_reference = same_name_nodes.pairs(models[candidate], models[reference], are_same)
    if free:
        in_candidate = [pair for pair in in_candidate if not free.of(pair.name)]
        in_reference = [pair for pair in in_reference if not free.of(pair.name)]
    hidden = [
        said
        for probe, found in ((candidate, in_candidate), (reference, in_reference))
        if found
        for said in _unseen(probe, models[probe], found[:: max(1, -(-len(found) // _MOST))], runs, check)
    ]
    return (first_few(hidden, 1, "; "),) if hidden else ()


def _unseen(probe: Probe, model: ir.Model, found: Sequence[Pair], runs: Sequence[Run], check: Check) -> list[str]:
    """Returns the sentences of `unseen_nodes` for one model, into which nodes of the other model are put."""
    usual = [(run, probe.plain(run.feed)) for run in runs]
    apart, quiet = _side_by_side(probe, model, found, runs)
    hidden = [
        f"{description(pair)} gives different results, but no output shows this"
        for pair in apart[:_SESSIONS]
        if not is_seen(probe, same_name_nodes.swapped(model, pair), usual, check)
    ]
    hidden += [
        f"{description(pair)} gives different results, but only for values that none of the inputs causes"
        for pair, read, sizes in quiet[:_SESSIONS]
        if differ_alone(probe, pair, read, sizes, model.opset_imports)
    ]
    return hidden


def description(pair: Pair) -> str:
    ours, theirs = pair.ours.op_type, pair.twin.op_type
    if ours != theirs:
        return f"{pair.name!r} is {ours} in one model and {theirs} in the other, and"
    return f"{ours} {pair.name!r} has different {'attributes or constants' if pair.is_wired_alike else 'inputs'}, and"


def are_same(a: ir.TensorProtocol, b: ir.TensorProtocol) -> bool:
    """Whether two constants are equal, up to the rounding of two ways of computing them."""
    if a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape):
        return False
    first, second = np.asarray(a.numpy()), np.asarray(b.numpy())
    if first.dtype.kind in "OUS":
        return bool((first == second).all())
    return np.array_equal(first, second) or not places(first, second).any()


@dataclass(frozen=True)
class _Answer:
    """Holds the results on one input: names of the pairs that differ, and dtypes and shapes of the arrays. The values
    are dropped, because the values of all inputs would fill the memory."""

    apart: frozenset[str]
    tensors: Mapping[str, tuple[ir.DataType, tuple[int, ...]]]


def _side_by_side(
    probe: Probe, model: ir.Model, found: Sequence[Pair], runs: Sequence[Run]
) -> tuple[list[Pair], list[tuple[Pair, Read, dict[str, int]]]]:
    """Returns two lists. The first list holds the pairs whose results differ on these inputs. The second list holds the
    pairs that read the same tensors and give equal results, with dtypes, shapes and sizes of these tensors. If the
    runtime refuses the model with all pairs, each pair is tried in a model of its own."""
    answers = _answers(
        probe, same_name_nodes.doubled(model, found), runs, {one.name for one in found if one.is_wired_alike}
    )
    if not answers and len(found) > 1:
        each = [_side_by_side(probe, model, [pair], runs) for pair in found[:_SESSIONS]]
        return [pair for apart, _ in each for pair in apart], [one for _, quiet in each for one in quiet]
    apart = [pair for pair in found if any(pair.name in one.apart for one in answers)]
    quiet = [
        (pair, *read)
        for pair in found
        if answers and pair not in apart and pair.is_wired_alike and (read := _read(pair, answers)) is not None
    ]
    return apart, quiet


def _answers(probe: Probe, doubled: Doubled, runs: Sequence[Run], alike: Set[str]) -> list[_Answer]:
    """Returns the results of the model that holds each node and its twin, for the inputs that this model accepts. Nodes
    that are `alike` read the same tensors and round alike. The other nodes end different computations, each with the
    rounding of its steps."""
    found: list[_Answer] = []
    counted = roundings(doubled.model) if doubled.outputs.keys() - alike else {}
    bounds = {
        name: tuple(map(max, counted[a].bounds, counted[b].bounds))
        for name, (a, b) in doubled.outputs.items()
        if name not in alike and a in counted and b in counted
    }
    try:
        with probe.prepared(doubled.model) as session:
            for run in runs:
                outputs, _ = answer(session, run.feed)
                if outputs is None:
                    continue
                apart = (
                    name
                    for name, (a, b) in doubled.outputs.items()
                    if _is_apart(outputs[a], outputs[b], bounds.get(name, ()))
                )
                arrays = {**run.feed.values, **outputs}.items()
                tensors = {name: (_dtype(one), one.shape) for name, one in arrays if isinstance(one, np.ndarray)}
                found.append(_Answer(frozenset(apart), tensors))
    except OnnxsmithError:
        return []
    return found


def _is_apart(ours: Any, theirs: Any, bounds: Sequence[float]) -> bool:
    return bool(difference(theirs, ours, *(bounds or (_UNITS * unit(ours),))).reason)


def _read(pair: Pair, answers: Sequence[_Answer]) -> tuple[Read, dict[str, int]] | None:
    """Returns the tensors that both nodes read, as dtypes and shapes, and the sizes in the largest input. Axes whose
    sizes change from run to run become symbols; axes that always change together share a symbol. Returns None if an
    operand is no tensor."""
    names = list(dict.fromkeys(name for name in pair.reads))
    if not names or any(name not in one.tensors for one in answers for name in names):
        return None
    shapes = {name: [one.tensors[name][1] for one in answers] for name in names}
    if any(len({len(shape) for shape in held}) > 1 for held in shapes.values()):
        return None
    largest = max(range(len(answers)), key=lambda at: sum(math.prod(held[at]) for held in shapes.values()))
    sizes: dict[str, int] = {}
    read: Read = {}
    for name, held in shapes.items():
        shape: list[int | str] = []
        for axis, over in enumerate(zip(*held, strict=True)):
            symbol = "n" + "_".join(map(str, over))  # equal sizes in all runs give one name
            shape.append(over[0] if len(set(over)) == 1 else symbol)
            if len(set(over)) > 1:
                sizes[symbol] = held[largest][axis]
        read[name] = (answers[0].tensors[name][0], tuple(shape))
    return read, sizes


def _dtype(array: np.ndarray[Any, Any]) -> ir.DataType:
    return ir.DataType.STRING if array.dtype.kind in "OUS" else ir.DataType.from_numpy(array.dtype)


def is_seen(probe: Probe, swap: ir.Model | None, usual: Sequence[tuple[Run, Outputs | None]], check: Check) -> bool:
    """Whether the check sees the other model's node in place of the model's own; also True if that model cannot run."""
    if swap is None:
        return True
    try:
        with probe.prepared(swap) as session:
            for run, before in usual:
                outputs, _ = answer(session, run.feed)
                # A refusal counts as seen: the node was reached, and the runtime tells the two nodes apart.
                if outputs is None or (before is not None and check.sees(run, before, outputs)):
                    return True
    except OnnxsmithError:
        return True
    return False


def differ_alone(
    probe: Probe, pair: Pair, read: Read, sizes: Mapping[str, int], opset_imports: Mapping[str, int]
) -> bool:
    """Whether two nodes that read the same tensors give different results on generated tensors. Generated texts cannot
    cover all cases, so for text inputs any difference between the nodes counts."""
    if any(dtype is ir.DataType.STRING for dtype, _ in read.values()):
        return True
    ours, theirs = (same_name_nodes.alone(node, read, opset_imports) for node in (pair.ours, pair.twin))
    rounding = roundings(theirs)
    generator = Generator.for_model(theirs)
    # The numbers of both nodes: they may differ in just such a limit.
    generator = replace(generator, numbers=generator.numbers.with_those_of(numbers(ours)))
    try:
        with probe.prepared(theirs) as reference, probe.prepared(ours) as other:
            for run in Explorer(reference, Plan(generator, start=dict(sizes)), rounding).runs():
                outputs, _ = answer(other, run.feed)
                for name, value in run.outputs.items():
                    bounds = rounding[name].bounds if name in rounding else (0.0, 0.0)
                    if outputs is None or difference(value, outputs[name], *bounds).reason:
                        return True
    except OnnxsmithError:
        return False
    return False
