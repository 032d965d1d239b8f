"""Reports a pruning: counts, the layers that lost channels, and the problems where nothing is pruned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.pruning import FixedChannels, PrunedLayer, SharePoint
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.words import first_few, listed, several, told_apart
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.dim_ranges import Sizes as DimSizes
from onnxsmith.graph.structure.dim_ranges import one_size, read
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision.integer_weights import integer_weights, quantisers
from onnxsmith.precision.pruning.channel_groups import Channels, Group
from onnxsmith.precision.pruning.channel_removal import Kept
from onnxsmith.precision.pruning.channel_selection import BLOCK, WIDE, Choice
from onnxsmith.precision.pruning.unfollowed_layers import OPTIMISED, nested, of_onnxruntime, unfollowed
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.scoring import Scored
from onnxsmith.verification.inputs.size_proposals import batches
from onnxsmith.viewer.inspection.costs.cost_report import costs
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes


@dataclass(frozen=True)
class Counted:
    """The parameters, and the multiply-adds of one run. Unknown multiply-adds are None, and `why` says why. `without`
    are operators of unknown costs, which are not counted."""

    parameters: int
    macs: int | None
    why: str = ""
    without: str = ""


class Counting:
    """Counts models at fixed sizes of the inputs: the given sizes, and example sizes for all other symbolic dimensions.

    Raises:
        OnnxsmithError: `inspect/unknown-dim` if no input has a dimension of a given name.
    """

    def __init__(self, model: ir.Model, given: DimSizes | None, where: str) -> None:
        interface = signature(model)
        self._sizes = Sizes(one_size(read(given)), batches(interface))
        for dim in interface.symbols():
            self._sizes.value(dim)
        unused = self._sizes.unused()
        if unused:
            raise problem(
                "inspect/unknown-dim",
                f"no dimension of the model is called {unused[0]!r}",
                where=where,
                fix=f"its symbolic dimensions are: {listed(self.sizes)}"
                if self.sizes
                else "leave --dim out: the model has fixed sizes only",
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Returns the size of each symbolic dimension."""
        return self._sizes.used()

    def of(self, model: ir.Model) -> Counted:
        """Counts the costs of a model. Symbolic shapes are inferred again from the sizes of the inputs, so that inner
        symbolic dimensions get sizes too."""
        made = cloned(model)
        for value in made.graph.inputs:
            if value.shape is not None:
                value.shape = ir.Shape([self._size(dim) for dim in value.shape])
        for node in made.graph:
            for value in node.outputs:
                if value.shape is not None and not value.shape.is_static():
                    value.shape = None
        infer(made)
        found = costs(made, {}, "the model")
        why = ""
        if found.unknown_shape:
            why = f"the shapes of {_listed(found.unknown_shape)} are not known"
        elif found.sizes:
            why = f"the size {', '.join(found.sizes)} does not follow from the sizes of the inputs"
        return Counted(found.parameters, None if why else found.macs.at, why, _listed(found.uncounted))

    def _size(self, dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
        if isinstance(dim, int) or dim.value is None:
            return dim
        return self._sizes.value(dim.value)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def layers(model: ir.Model, found: Channels, kept: Kept) -> tuple[PrunedLayer, ...]:
    """Returns the layers that became smaller, in the order of the graph."""
    ops = {walk.node_label(node): walk.op_name(node) for node in model.graph}
    each = {slot: len(at) for group in found.free for channel in group.channels[:1] for slot, at in channel}
    return tuple(
        PrunedLayer(label, ops[label], found.links.slots[slot], len(kept[slot]), each.get(slot, 1))
        for slot, label in found.links.opened.items()
        if slot in kept
    )


def fixed(model: ir.Model, found: Channels, kept: Kept, choice: Choice) -> tuple[FixedChannels, ...]:
    """Returns the groups that keep all channels, including those that lose none because of the share or the
    multiple."""
    stay = [FixedChannels(group.layers, group.count, group.reason) for group in found.fixed]
    whole = idle(found, choice, kept) if kept else ()
    return (*stay, *whole, *unfollowed(model, found))


def notes(model: ir.Model) -> Iterator[str]:
    """Yields notes on layers that `prune` does not examine: layers in branches, and operators of onnxruntime."""
    inner, foreign = nested(model), of_onnxruntime(model)
    if inner:
        yield inner
    if foreign:
        yield f"channels are not followed through {foreign}: {OPTIMISED}"


def idle(found: Channels, choice: Choice, kept: Kept | None = None) -> tuple[FixedChannels, ...]:
    """Returns the groups that could lose channels but lose none."""
    return tuple(
        FixedChannels(group.layers, group.count, _why_idle(group, choice), is_free=True)
        for group in found.free
        if not any(slot in (kept or {}) for slot in group.slots)
    )


def _why_idle(group: Group, choice: Choice) -> str:
    multiple, count, each = choice.multiple_of(group), len(group.channels), max(group.each, default=1)
    if multiple == 1:
        return "others matter less" if choice.is_global else "the share is smaller than one channel"
    whole = choice.multiple or BLOCK
    said = f"channels of this layer can only be removed in {count:,} groups of {each:,}: " if each > 1 else ""
    if multiple >= count:
        said += f"no smaller number than {each * count:,} channels is a multiple of {whole}"
        return f"{said}; --multiple 1 allows any number of channels"
    if each > 1:
        return f"{said}{each * multiple:,} channels, the least multiple of {whole}, are more than the share"
    return f"the layer keeps a multiple of {multiple} channels, and the share is too small to reach the next multiple"


def uneven(found: Channels, layers: Sequence[PrunedLayer], choice: Choice) -> Iterator[str]:
    """Yields a note on wide layers that do not keep a multiple, because their channels are in several groups."""
    multiple = choice.multiple or BLOCK
    odd = [
        one
        for one in layers
        if one.after % multiple and one.before % multiple == 0 and (choice.multiple or one.before >= WIDE)
    ]
    if odd and multiple > 1:
        said = first_few([f"{one.name}: {one.after:,}" for one in odd], _FEW)
        yield (
            f"{several(len(odd), 'layer')} do not keep a multiple of {multiple} channels, because the channels of "
            f"each are in several groups, which are cut independently ({said})"
        )


_FEW = 3
"""The most layers that a note names. A choice."""


def none_at(share: float, idle: Sequence[FixedChannels], least: int | None) -> OnnxsmithError:
    """Makes the problem for a share that removes no channel. `idle` are the groups that could become smaller, with
    reasons. `least` is the least share in percent that removes a channel, if there is one."""
    reasons = dict.fromkeys(f"{', '.join(one.layers[:2])}: {one.reason}" for one in idle)
    helps = any("--multiple 1" in one.reason for one in idle)
    return problem(
        "prune/nothing",
        "this share removes no channel",
        where=f"--share {share:.3g}",
        why="; ".join(list(reasons)[:_REASONS]) or "the groups are small, or --multiple keeps all of their channels",
        fix=", or ".join(
            [
                *(["--multiple 1"] if helps or least is None else []),
                *([f"--share {least}%"] if least is not None else []),
                *([] if helps or least is None else ["a smaller --multiple"]),
            ]
        ),
    )


def budget_not_met(curve: Sequence[SharePoint], given: Given, before: Scored, singly: int = 0) -> Problem:
    """Makes the problem for a search in which no evaluated share met the budget. `singly` are the channels that go
    within it if layers need not keep a multiple."""
    best = min((one for one in curve if one.removed), key=lambda one: one.share, default=curve[0])
    score = given.scoring.score
    bound = given.budget.bound(before.value, score.better)
    had, least, reached = told_apart(before.value, bound, best.score)
    return problem(
        "prune/budget-not-met",
        "no share of channels meets the budget",
        where=f"{score.title} {had}; the budget allows {least} at worst",
        why=f"{len(curve)} shares were evaluated; the smallest share that removes a channel, {best.share:.3g}, has "
        f"the score {reached}",
        fix=(f"give --multiple 1, which removes {several(singly, 'channel')}; or " if singly else "")
        + f"{given.budget.wider(before.value, best.score, score.better)}; or prune without a budget, and train the "
        "smaller model further: see docs/pruning.md",
    ).problem


def ruined(given: Given, before: Scored, after: Scored, wrong: float, smaller: tuple[float, float] | None) -> Problem:
    """Makes the problem for a pruned model that is nearer to a wrong model than to the given one. `wrong` is the score
    with outputs of other samples. `smaller` is a share that does not ruin the score, with its score."""
    score = given.scoring.score
    had, has, worst = told_apart(before.value, after.value, wrong)
    less = (
        f"give --share {100 * smaller[0]:.3g}%, with which the score is {smaller[1]:.4g}" if smaller is not None else ""
    )
    train = (
        "train the smaller model further: add --write-unsure and --keep-list kept.json; docs/pruning.md shows how "
        "kept.json cuts the torch module"
    )
    return problem(
        "prune/ruined",
        "the pruned model has lost most of the score",
        where=f"{score.title} {had} → {has}",
        why=f"the new score is nearer to {worst}, the score with the outputs of other samples, than to the old score",
        fix="; or ".join(filter(None, [less, train])),
    ).problem


def levels_differ(scores: Sequence[Scored]) -> Problem:
    """Makes the problem for a score that depends on the runtime's optimisations."""
    every, none = told_apart(scores[0].value, scores[1].value)
    return Problem(
        "prune/levels-differ",
        "the pruned file is out of budget at one of onnxruntime's optimisation levels",
        where=f"score with all optimisations: {every}; without optimisations: {none}",
        fix="give a wider --budget, or a smaller --share",
    )


def nothing(model: ir.Model, found: Channels, where: str) -> OnnxsmithError:
    """Makes the problem for a model in which no group may lose channels."""
    quantised = quantisers(model)
    stored = sum(1 for _ in integer_weights(model))
    if quantised or stored:
        quantised |= {f"{'weight' if stored == 1 else 'weights'} stored as integers": stored} if stored else {}
        return problem(
            "prune/quantised",
            "the model is quantised, and prune cannot follow quantised weights",
            where=where,
            why=", ".join(f"{count} {name}" for name, count in quantised.items()),
            fix="prune the float32 model, and quantise the result: `onnxsmith quantize`",
        )
    others, inner = unfollowed(model, found), nested(model)
    told = [(group.layers, group.reason) for group in found.fixed] + [(one.layers, one.reason) for one in others]
    reasons = list(dict.fromkeys(f"{', '.join(layers[:2])}: {reason}" for layers, reason in reversed(told)))[:_REASONS]
    return problem(
        "prune/nothing",
        "no channel of the model can be removed",
        where=where,
        why="; ".join([*reasons, *([inner] if inner else [])])
        or "the model has no Conv, ConvTranspose, Gemm or MatMul with a stored weight",
        fix=_fix(model, others, inner),
    )


def _fix(model: ir.Model, others: Sequence[FixedChannels], inner: str) -> str:
    """Returns the fix for the reason that most likely applies to the user."""
    if listed := of_onnxruntime(model):
        return f"prune the file from before onnxruntime's optimisations: these made the {listed} in this file"
    if any("`onnxsmith simplify`" in one.reason for one in others):
        return (
            "simplify the model first, which computes weights that do not depend on inputs: "
            "`onnxsmith simplify MODEL -o s.onnx`"
        )
    if inner:
        return (
            "`onnxsmith simplify MODEL -o s.onnx` replaces an If by its branch where the condition does not depend on "
            "inputs; else export the branch as a model of its own"
        )
    return "no fix is known for this model; docs/pruning.md lists the operators through which prune follows channels"


def refuse_not_finite(model: ir.Model, found: Channels, where: str) -> None:
    """Raises `prune/not-finite` if a weight that channels go through has NaN or infinity."""
    names = dict.fromkeys(name for group in found.free for name, _ in group.slots if name in model.graph.initializers)
    wrong = []
    for name in names:
        tensor = model.graph.initializers[name].const_value
        array = None if tensor is None else np.asarray(tensor.numpy())
        if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong.append(f"{name} ({int((~np.isfinite(array)).sum()):,} of {array.size:,} elements)")
    if wrong:
        raise problem(
            "prune/not-finite",
            "a weight has values that are NaN or infinite",
            where=f"{where}: {first_few(wrong, _REASONS)}",
            why="channels with such weights cannot be ordered by importance, and outputs that are NaN cannot be "
            "compared",
            fix="export the network again from a checkpoint in which these weights are finite",
        )


def of_dtype(error: OnnxsmithError, model: ir.Model) -> OnnxsmithError:
    """Returns the error of a runtime that does not run the given model. If the model's dtype may be the cause, adds a
    fix."""
    found = {value.dtype for node in model.graph for value in node.outputs}
    found |= {value.dtype for value in (*model.graph.inputs, *model.graph.initializers.values())}
    other = next((dtype for dtype in (ir.DataType.BFLOAT16, ir.DataType.DOUBLE) if dtype in found), None)
    if other is None or not error.problem.id.startswith("runtime/"):
        return error
    return OnnxsmithError(
        replace(
            error.problem,
            why=f"{error.problem.why}; the model computes in {other.name.lower()}".removeprefix("; "),
            fix="prune a float32 model: export the network again after `network.float()`, prune that file, and make "
            "the result narrow",
        )
    )


_REASONS = 4
"""The most reasons in a message. A choice."""


def unproven(proof: Verification, inputs: Sequence[str], *, is_real: bool) -> tuple[Problem, ...]:
    """Makes the problem for a comparison that did not prove the pruned model. `inputs` are the names of the model's
    inputs, and `is_real` is whether the user gave data."""
    if proof.differs:
        wrong = next((one for one in proof.outputs if not one.equal), None)
        return (
            Problem(
                "prune/not-equal",
                "the pruned model does not compute what the model without the channels computes",
                where="" if wrong is None else f"{wrong.name}: {wrong.reason} {wrong.where}".strip(),
                why="a channel was followed wrongly through an operator",
                fix="report this as a bug, with the model; nothing was written",
            ),
        )
    return (
        Problem(
            "prune/cannot-tell",
            "the comparison with the model without the channels shows too little",
            where="; ".join(proof.unsure)[:300],
            why="the comparison might not have noticed a wrong cut",
            fix=_samples(inputs, is_real=is_real),
        ),
    )


def _samples(inputs: Sequence[str], *, is_real: bool) -> str:
    """Advises to give samples on which the outputs depend on the weights."""
    arrays = ", ".join(f"{name}=…" for name in inputs)
    others = "other samples" if is_real else "samples"
    return (
        f"give {others} on which the outputs depend on the weights: write them by numpy.savez('samples.npz', "
        f"**dict({arrays})) and add --data samples.npz; or train the network first, if a layer of it is all zeros"
    )
