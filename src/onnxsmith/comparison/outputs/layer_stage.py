"""Compares layers as a stage of `compare`: chooses the inputs, and adds the results to the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.layers import Cause, FirstSeen, Layer, Layers, LayersByInput, OneInput
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted, pasted_words
from onnxsmith.comparison.outputs.candidate_state import Recorder
from onnxsmith.comparison.outputs.comparison_setup import Compared
from onnxsmith.comparison.outputs.optimisation_effects import changed_outputs, explained
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.comparison.outputs.single_input_layers import LayerOptions, by_layer, without_optimisations
from onnxsmith.verification.inputs.generate import Feed


@dataclass(frozen=True)
class Staged:
    """The stage's additions to a report. `verdict` is None if the stage does not change it. `outputs` is the
    verification as the report shows it, if the layers decide and the outputs do not."""

    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    verdict: Verdict | None = None
    outputs: Verification | None = None


def layered(read: Compared, part: Verification, worst: Feed, recorder: Recorder, options: LayerOptions) -> Staged:
    """Compares the layers on the inputs that show most. An error of this comparison becomes a problem of the report,
    which keeps the result for the outputs. `recorder` has the given inputs on which outputs differ."""
    feeds, note = _feeds(read, worst, [run.feed for run in recorder.differing])
    sure = part.equal and not part.unsure
    try:
        layers, by_input = on_inputs(read.a, read.b, feeds, options, read.tolerance, equal=sure)
    except OnnxsmithError as error:
        return Staged((), (error.problem,), Verdict.FAILED)
    feed = next((one for one in feeds if one.label == layers.input), worst)
    changed = changed_outputs(layers, part, feed, recorder.met.get(feed.label))
    if sure and any(changed.values()) and without_optimisations(read.a, read.b) is None:
        layers = replace(layers, culprits=())  # the outputs differ only because tensors are exposed
    shown = replace(layers, exposed=explained(read, feed, changed))
    parts: tuple[Part, ...] = (shown,) if by_input is None else (replace(by_input, note=note), shown)
    file = str(read.b.source) if isinstance(read.b.source, Path) else ""
    if not layers.culprits:
        return Staged(parts)
    outputs = None if part.differs else _undecided(part)
    return Staged(parts, blamed(layers, file, outputs_agree=outputs is not None), Verdict.DIFFERENT, outputs)


def _undecided(part: Verification) -> Verification:
    """Returns a verification whose outputs agree, if a layer has an error: the outputs do not decide."""
    said = "the outputs agree within rounding, but a layer below has an error, so the models are different"
    unseen = [f"why the outputs do not show the error: {why}" for why in part.unsure]
    return replace(part, unsure=(), notes=(said, *unseen, *part.notes))


def _feeds(read: Compared, worst: Feed, differing: Sequence[Feed]) -> tuple[list[Feed], str]:
    """Returns the inputs on which layers are compared: the first step that differs, or all given inputs."""
    if read.calls is not None:
        return [differing[0] if differing else worst], ""
    if len(read.plan.given) > 1:
        return chosen(read.plan.given, differing, worst)
    return [worst], ""


# Says which operations are to blame, and what to do about it.

_NAMED = 5
"""How many culprits a problem names. A choice: one line or two."""


def blamed(layers: Layers, candidate: str, *, outputs_agree: bool = False) -> tuple[Problem, ...]:
    """Returns the problem of the culprits; empty without one. `candidate` is the candidate's path, "" if it has
    none."""
    if not layers.culprits:
        return ()
    first, cause = layers.layer(layers.culprits[0]), layers.cause
    why = ["the outputs agree within rounding, but the error of this layer decides"] if outputs_agree else []
    if first.own is not None:
        why.append(
            f"computed from the reference's inputs, its worst element is off by {first.own:.2g} of its scale; rounding "
            f"explains {first.allowed:.2g}"
        )
    elif first.reason:
        why.append(f"it differs from the tensor of the reference: {first.reason}")
    inside = layers.inside
    if inside is not None:
        why.append(
            f"in its body, {inside.name} is the first tensor that differs, in iteration {inside.iteration} "
            f"of {inside.of}: "
            f"{inside.reason}"
        )
    if cause is not None and (inside is None or cause.agrees):
        tried = (
            "all outputs agree"
            if cause.agrees
            else (
                f"the worst element of the outputs is off by {cause.after:.2g} of its scale instead of "
                f"{cause.before:.2g}"
            )
        )
        why.append(f"the graphs differ there: {cause.said()}; with this undone, {tried}")
    reason = first.reason or "the graphs differ there"
    said = f"{first.name} is the first tensor whose operation adds an error: {reason}"
    if len(layers.culprits) > 1:
        named = first_few(layers.culprits, _NAMED)
        said = (
            f"{len(layers.culprits)} tensors differ by errors that their own operations add: {named}; in the "
            f"first, {reason}"
        )
    return (
        Problem(
            "compare/first-error",
            said,
            where=f"{first.op} {', '.join(first.steps)}"
            + (f", in its body {inside.step}" if inside is not None else "")
            + (f", from {first.place()}" if first.place() else ""),
            why="; ".join(why),
            fix=_fix(first, cause, candidate),
        ),
    )


def _fix(first: Layer, cause: Cause | None, candidate: str) -> str:
    """Returns the fix for the culprits: a patch that undoes their causes, as far as these are known."""
    if cause is None or not (cause.agrees or cause.patch):
        compared = "compare the attributes and weights of this node with those in the reference"
        if not candidate or not first.steps:
            return compared
        shown = pasted_words(["onnxsmith", "inspect", candidate, first.steps[0].removeprefix("-> ")])
        return f"{compared}: `{shown}` shows them"
    if not cause.patch or not candidate:
        return f"undo this difference: {cause.said()}"
    lines = " ".join(pasted(line) for line in cause.patch.splitlines())
    command = ["onnxsmith", "edit", candidate, "fix.toml", "-o", f"{Path(candidate).stem}_fixed.onnx"]
    undo = f"`printf '%s\\n' {lines} > fix.toml; {pasted_words(command)}`"
    if cause.by_hand:
        return f"{undo} undoes a part of the difference; undo the rest by hand: {', and '.join(cause.by_hand)}"
    return undo if cause.agrees else f"{undo} undoes a part of the difference; then compare again to find the rest"


_MOST = 16
"""How many inputs layers are compared on. A choice: each takes as long as a comparison by layer of one input."""


def on_inputs(
    a: SideSource,
    b: SideSource,
    feeds: Sequence[Feed],
    options: LayerOptions,
    tolerance: float | None = None,
    *,
    equal: bool = False,
) -> tuple[Layers, LayersByInput | None]:
    """Compares layers on all `feeds`. Returns the comparison on the first feed with an erring layer, or else on the
    feed with the largest difference. With several feeds, also returns a summary of each.

    Raises:
        OnnxsmithError: `compare/unpaired`; the errors of the runtimes.
    """
    found = []
    for number, feed in enumerate(feeds):
        advance("layers", number, len(feeds))
        found.append(by_layer(a, b, feed, options, tolerance, equal=equal))
    if len(found) == 1:
        return found[0], None
    shown = next((one for one in found if one.culprits), max(found, key=_worst))
    return shown, LayersByInput(tuple(map(_one, found)), tuple(_first_seen(found)))


def chosen(given: Sequence[Feed], differing: Sequence[Feed], worst: Feed) -> tuple[list[Feed], str]:
    """Returns the feeds on which layers are compared, in their order, with a note if some are left out. These are all
    given feeds, and the one with the largest difference. If there are too many, those on which outputs differ take
    precedence."""
    every = [*given, *([] if _among(worst, given) else [worst])]
    if len(every) <= _MOST:
        return every, ""
    kept: list[Feed] = []
    for one in (worst, *differing, *given):
        kept += [one] if len(kept) < _MOST and not _among(one, kept) else []
    said = f"layers were compared on {_MOST} of {len(every)} inputs, those on which outputs differ first"
    return [one for one in every if _among(one, kept)], said


def _among(feed: Feed, others: Sequence[Feed]) -> bool:
    return any(feed.values is other.values for other in others)


def _worst(found: Layers) -> float:
    return max((layer.inherited for layer in found.layers), default=0.0)


def _one(found: Layers) -> OneInput:
    first = found.layer(found.culprits[0]) if found.culprits else None
    return OneInput(
        input=found.input,
        pairs=len(found.layers),
        differing=sum(layer.differs for layer in found.layers),
        worst=_worst(found),
        first="" if first is None else first.name,
        op="" if first is None else first.op,
    )


def _first_seen(found: Sequence[Layers]) -> list[FirstSeen]:
    """Returns the layers with an error of their own, in the order in which the inputs show them."""
    seen: dict[str, FirstSeen] = {}
    for one in found:
        for name in one.culprits:
            layer = one.layer(name)
            own = layer.inherited if layer.own is None else layer.own
            known = seen.setdefault(name, FirstSeen(name, layer.op, one.input, own, 0))
            seen[name] = FirstSeen(name, known.op, known.input, known.own, known.count + 1)
    return list(seen.values())
