"""Reads the subjects' models, and chooses the inputs for all models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.words import listed, pasted
from onnxsmith.comparison.outputs.comparison_setup import Compared, compared, evidence
from onnxsmith.comparison.outputs.sides import SideSource, as_programs, renamed, side, under
from onnxsmith.deployment.benching.subjects import Failed, Subject
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure.dim_ranges import Size, one_size
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.inputs import size_limits, user_inputs
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.rounding import asked
from onnxsmith.verification.run import instead, planned, said_of
from onnxsmith.verification.verify import Side, verify

_REFUSALS = {"runtime/failed", "run/dimension-conflict"}


@dataclass(eq=False)
class Ready:
    """Holds a subject with its model. `names` maps the lead's input names to the subject's own names; `also` are inputs
    of the other sizes."""

    subject: Subject
    side: SideSource
    names: Mapping[str, str]

    def own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the lead's inputs under this subject's names."""
        return {self.names[name]: value for name, value in values.items() if name in self.names}


@dataclass(frozen=True)
class Chosen:
    """Holds the inputs of a benchmark, under the lead's names. `sizes` are the sizes of symbolic dimensions, `origin`
    is the source of the inputs, `notes` are for the report."""

    feed: Feed
    sizes: dict[str, int]
    origin: str
    notes: tuple[str, ...] = ()


def ready(subjects: Sequence[Subject], stack: ExitStack) -> tuple[list[Ready], list[Failed]]:
    """Returns the lead, then the other subjects whose required inputs the lead has. The lead is the first ONNX model,
    which describes its inputs best, else the first model. A subject with a required input that the lead lacks is a
    failure.

    Raises:
        OnnxsmithError: the errors of loading a model.
    """
    sides: list[SideSource] = []
    for one in subjects:
        same = next((s for other, s in zip(subjects, sides, strict=False) if other.target is one.target), None)
        sides.append(side(one.target, None if one.is_torch else one.on, stack, in_pieces=False, beside=same))
    first = next((index for index, one in enumerate(sides) if one.model is not None), 0)
    for index, read in enumerate(sides):
        if read.torch_model is not None:
            made = as_programs(read, sides[first])[0]
            sides[index] = replace(made, runtime=subjects[index].runtime)
    lead = sides[first]
    found, failed = [], []
    for read, subject in zip(sides, subjects, strict=True):
        stack.callback(read.close)
        names = renamed(read.interface, lead.interface)
        needed = [port.name for port in read.interface.required() if port.name not in names.values()]
        if needed:
            failed.append(Failed.of(subject.label, _lacking(needed, lead)))
        else:
            own = {port.name: names[port.name] for port in lead.interface.inputs if port.name in names}
            found.append(Ready(subject, read, own))
    found.sort(key=lambda one: one.side is not lead)
    return found, failed


def _lacking(needed: Sequence[str], lead: SideSource) -> OnnxsmithError:
    return problem(
        "verify/interface",
        f"the model needs inputs that {lead.label} does not have: {', '.join(needed)}",
        fix="measure models that have the same inputs; `onnxsmith inspect` shows them",
    )


def chosen(
    lead: Ready, inputs: Mapping[str, Any] | Sequence[str], sizes: Mapping[str, Size], seed: int, *, check: bool = True
) -> Chosen:
    """Returns the given inputs. Without given inputs, returns generated inputs that the lead accepts, or the example
    inputs if all models are torch models.

    Raises:
        OnnxsmithError: `bench/unsized` if a symbolic dimension has no size, `bench/no-dimension` for a size of a
            dimension that no input has, the errors of reading the inputs.
    """
    interface = lead.side.interface
    named = symbols(Signature(interface.inputs, ()))
    stray = [name for name in sizes if name not in (*named, *size_limits.names(interface))]
    if stray:
        raise _no_dimension(stray[0], sorted(named), lead)
    sizes = one_size(sizes)
    values = dict(inputs) if isinstance(inputs, Mapping) else user_inputs.values(inputs, interface)
    lacking = [port.name for port in interface.required() if port.name not in values]
    if values and not lacking:
        feed = Feed("the given input", of_feed(interface, values), values)
        _agree(sizes, feed)
        return Chosen(feed, dict(feed.sizes), "given")
    if lead.side.model is None:
        example = dict(lead.side.example)
        feed = Feed("the example inputs", of_feed(interface, example), {**example, **values})
        return Chosen(feed, dict(feed.sizes), "the torch model's example inputs")
    known = {**of_feed(Signature(tuple(p for p in interface.inputs if p.name in values), ()), values), **sizes}
    plan = planned(lead.side.model, interface, known, seed)
    known = dict(plan.known)
    unsized = sorted(symbols(Signature(plan.generator.signature.inputs, ())) - known.keys())
    if unsized:
        raise _unsized(unsized, lead)
    feed = plan.generator.feed(dict(plan.start or {}), seed=seed)
    feed = replace(feed, values={**feed.values, **values})
    feed, notes = _accepted(lead, feed, replace(plan, known=known)) if check else (feed, ())
    return Chosen(feed, known, f"generated, seed {seed}" + (", in part given" if values else ""), notes)


def _accepted(lead: Ready, feed: Feed, plan: Plan) -> tuple[Feed, tuple[str, ...]]:
    """Returns the feed if the lead runs on it, else another feed of the same sizes. If the lead cannot run at all,
    returns the feed, because the measurement will report the reason."""
    try:
        with lead.side.prepare() as session:
            try:
                session.run(feed.values)
            except OnnxsmithError as error:
                other = instead(session, plan) if error.problem.id in _REFUSALS else None
                if other is None or any(other.feed.sizes.get(k, v) != v for k, v in plan.known.items()):
                    return feed, ()
                return other.feed, (said_of(other),)
    except OnnxsmithError:
        return feed, ()
    return feed, ()


def _agree(sizes: Mapping[str, Size], feed: Feed) -> None:
    """Raises `run/dimension-conflict` if a given size contradicts the given inputs."""
    for name, size in sizes.items():
        if feed.sizes.get(name, size) != size:
            raise problem(
                "run/dimension-conflict",
                f"dimension {name!r} is {feed.sizes[name]} in the given inputs, but {size} was requested",
                fix="leave the size out, so that the size of the inputs is used",
            )


def _unsized(unsized: Sequence[str], lead: Ready) -> OnnxsmithError:
    options = " ".join(f"--dim {pasted(name)}=8" for name in unsized)
    return problem(
        "bench/unsized",
        f"no size was given for {', '.join(unsized)}",
        where=f"{lead.subject.model}: " + ", ".join(f"{p.name} {p}" for p in lead.side.interface.inputs),
        why="the time depends on this size, so bench chooses no default",
        fix=f"give the size at which you run the model, as in {options}; or give inputs: --input x=array.npy",
    )


def _opening(name: str, lead: Ready) -> str:
    """Returns advice on how to give a dimension of the lead this name."""
    port = next((port for port in lead.side.interface.inputs if port.shape), None)
    if port is None:
        return "leave the size out"
    target = lead.subject.target
    model = pasted(target) if isinstance(target, str | Path) else "MODEL"
    axis = pasted(f"{port.name}:0={name}")
    return f"leave the size out, or make an axis symbolic: `onnxsmith set-dim {model} {axis} -o dynamic.onnx`"


def _no_dimension(name: str, known: Sequence[str], lead: Ready) -> OnnxsmithError:
    opening = "give inputs of that size: --input x=array.npy" if lead.side.model is None else _opening(name, lead)
    return problem(
        "bench/no-dimension",
        f"no input has a symbolic dimension {name!r}",
        fix=f"the symbolic dimensions are: {listed(known)}"
        if known
        else f"the model has no symbolic dimensions; {opening}",
    )


_BETWEEN_TORCH = 1e-3
"""Limits the difference between a torch module and its compiled form, relative to the output's scale. A choice: a
compiler adds float32 numbers in another order, and without a graph the effect of the order cannot be computed."""


@dataclass(frozen=True)
class Check:
    """Says whether a subject's outputs agree with the lead's: None if this is unknown. `said` is a clause about the
    agreement."""

    equal: bool | None
    said: str


def checked(lead: Ready, other: Ready, feed: Feed, tolerance: float | None) -> Check:
    """Compares the outputs on `feed`, as `compare` does. `tolerance` is relative to an output's scale; None allows the
    differences that rounding explains."""
    if other.subject.target is lead.subject.target and other.subject.on == lead.subject.on:
        return Check(True, "the same model on the same runtime")
    try:
        part = _judged(lead, other, feed, tolerance, generate=False)
        if part.unsure:  # one input shows too little: others are generated, as `compare` does
            part = _judged(lead, other, feed, tolerance, generate=True)
    except OnnxsmithError as error:
        kind = error.problem.id
        told = False if kind in ("verify/interface", "verify/outputs-differ") else None
        return Check(told, f"not compared: {error.problem.what} ({kind})")
    if part.equal:
        return Check(True, "equal within rounding" if tolerance is None else f"equal within {tolerance:g}")
    if part.unsure:
        return Check(None, f"no difference was found, but {part.unsure[0]}")
    bad = next((output for output in part.outputs if not output.equal), None)
    return Check(False, f"output {bad.name!r} differs: {bad.reason}" if bad else "; ".join(part.notes))


def _judged(lead: Ready, other: Ready, feed: Feed, tolerance: float | None, *, generate: bool) -> Verification:
    """Compares the outputs on `feed`, and on generated inputs if `generate` is set."""
    with ExitStack() as stack:
        read = _read(lead, other, feed, tolerance, stack, generate=generate)
        with read.a.prepare() as first, read.b.prepare() as second, ExitStack() as probes:
            sides = Side(read.a.label, first), Side(read.b.label, under(second, read.b.interface, read.a.interface))
            return verify(*sides, read.plan, read.tolerances, evidence(read, probes))


def _read(
    lead: Ready, other: Ready, feed: Feed, tolerance: float | None, stack: ExitStack, *, generate: bool
) -> Compared:
    read = compared(
        _given(lead.subject),
        _given(other.subject),
        inputs=[feed],
        sizes=None,
        runtime=None,
        generate=generate,
        seed=0,
        tolerance=tolerance,
        per_layer=False,
        stack=stack,
    )
    a, b = _on(read.a, lead.subject), _on(read.b, other.subject)
    if tolerance is None and a.model is None and b.model is None:
        read = replace(read, tolerances={port.name: asked(_BETWEEN_TORCH) for port in a.interface.outputs})
    return replace(read, a=a, b=b)


def _given(subject: Subject) -> Any:
    """Returns the subject as an argument of a comparison."""
    return subject.target if subject.is_torch else f"{subject.target}@{subject.on}"


def _on(side: SideSource, subject: Subject) -> SideSource:
    return replace(side, runtime=subject.runtime) if subject.is_torch else side
