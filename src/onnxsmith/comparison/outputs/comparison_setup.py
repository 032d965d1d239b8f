"""Prepares a comparison: two sides, their inputs, and the tolerances."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import pasted
from onnxsmith.comparison.outputs.default_inputs import with_common_inputs, with_fixed_defaults
from onnxsmith.comparison.outputs.reference_steps import Calls
from onnxsmith.comparison.outputs.sides import (
    SideSource,
    as_programs,
    check_pairing,
    on_runtime,
    other_order,
    paired,
    renamed,
    side,
    under,
)
from onnxsmith.comparison.outputs.state_names import fed_back
from onnxsmith.exporter.factory import is_target
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes import torch_eager as programs
from onnxsmith.runtimes.base import Options, Program, Session
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification import float64_session, free_values, random_draws, runtime_choice
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.by_layer.replay import Recording
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.inputs import size_limits, user_inputs
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_constraints import numbers
from onnxsmith.verification.inputs.user_inputs import Inputs
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import (
    Rounding,
    asked,
    leaves_activations_open,
    quantises,
    roundings,
    uncounted,
)
from onnxsmith.verification.session_view import View
from onnxsmith.verification.verify import Evidence


@dataclass(frozen=True)
class Section:
    """The tensors between which both models are cut, by name or as selectors. Empty means the graph inputs or
    outputs."""

    start: Sequence[Any] = ()
    end: Sequence[Any] = ()

    def __bool__(self) -> bool:
        return bool(self.start or self.end)


WHOLE = Section()
"""From the graph inputs to the graph outputs: nothing is cut."""


def sections(section: Section, a: SideSource, b: SideSource) -> tuple[SideSource, SideSource]:
    """Returns both sides, each cut to the part by `extract`. If both sides are one file, it is cut once.

    Raises:
        OnnxsmithError: `compare/no-part` for a side that is no ONNX graph; `edit/…` if a model has no such part.
    """
    first = _cut(section, a)
    same = a.model is not None and a.model is b.model
    return first, _moved(first, b) if same else _cut(section, b)


def _cut(section: Section, side: SideSource) -> SideSource:
    if side.model is None:
        raise _no_part(side)
    from onnxsmith.editor.edit import Edit
    from onnxsmith.editor.steps.extract import Extract

    try:
        edit = Edit(side.model, None, verify=False)
        edit.apply([Extract(from_=list(section.start) or None, to=list(section.end) or None)])
    except OnnxsmithError as error:
        found = error.problem
        raise OnnxsmithError(dataclasses.replace(found, where=f"{side.label}, {found.where}")) from error.__cause__
    return _moved(replace(side, model=edit.model), side)


def _no_part(side: SideSource) -> OnnxsmithError:
    name = side.label.removesuffix(" in PyTorch, eager")
    why, fix = "a torch model has no tensors by name before it is exported", ""
    if isinstance(side.source, Recording):
        why = "the file contains values that were computed from the graph inputs, and no graph that could be cut"
        fix = "remove --from and --to, or compare with the model that computed these values"
    elif is_target(name):
        fix = f"export it, and compare the file: `onnxsmith export {pasted(name)} -o exported.onnx`"
    return problem(
        "compare/no-part",
        "only ONNX models can be compared in part",
        where=side.label,
        why=why,
        fix=fix or "export it, and compare the file: onnxsmith.export(module, args, output='exported.onnx')",
    )


def _moved(cut: SideSource, side: SideSource) -> SideSource:
    """Returns the side with the graph of another side that was cut."""
    assert cut.model is not None
    name, _, runtime = side.label.rpartition(" on ")
    label = f"a part of {name} on {runtime}"
    return replace(side, label=label, source=cut.model, model=cut.model, interface=signature(cut.model))


@dataclass(frozen=True)
class Compared:
    """A prepared comparison. `tolerances` are by output, in the names of the reference `a`; `tolerance` is the user's
    own."""

    a: SideSource
    b: SideSource
    plan: Plan
    tolerances: Mapping[str, Rounding]
    tolerance: float | None
    notes: tuple[str, ...]
    coarser: Mapping[str, float]
    few_steps: bool
    """Whether only one side quantises, or may do so: the tolerance then follows only from the quantisers' steps."""
    calls: Calls | None = None
    """Calls in a row with a state, if requested. The given inputs of `plan` then lack the state."""
    budget: Budget = field(default_factory=Budget)
    clauses: tuple[str, ...] = ()
    """Clauses for the headline: the runtime, if it is not the usual one."""


def elsewhere(read: Compared, refusal: Problem, stack: ExitStack) -> Compared:
    """Returns the comparison on the next runtime that accepts both graphs, with a clause on that. It ends with `stack`.
    If the runtime failed on what the standard allows, this is the reference evaluator.

    Raises:
        OnnxsmithError: `refusal`, if no runtime accepts them.
    """
    sources = [one.source for one in (read.a, read.b) if not isinstance(one.source, Program)]
    if refusal.id in runtime_choice.FAILS:
        choice = runtime_choice.RuntimeChoice(runtime_choice.STANDARD, (refusal,))
    else:
        choice = runtime_choice.able(sources, {runtimes.default(): refusal})
    a, b = (on_runtime(one, choice.runtime) for one in (read.a, read.b))
    for one in (a, b):
        stack.callback(one.close)
    return replace(read, a=a, b=b, clauses=(*read.clauses, choice.clause))


def evidence(read: Compared, stack: ExitStack) -> Evidence:
    """Returns the means to measure rounding and the power of the comparison: probes of the sides' graphs. Sides without
    a graph have no probe. The probes end with `stack`."""
    elsewhere, arbiter = _elsewhere(read), _arbiter(read.a, read.b)
    if arbiter is not None:
        stack.callback(arbiter.close)
    graphs = [(one, one.model) for one in (read.a, read.b) if one.model is not None]
    of = {one: stack.enter_context(_probe(one, model, read.a.interface)) for one, model in graphs}
    means = Evidence.of(of.get(read.a), of.get(read.b), arbiter, by_name=True)
    same = len(of) == 2 and read.a.source == read.b.source
    return replace(
        means,
        sides=of.get(read.a, of.get(read.b)),
        has_module=len(graphs) == 1,
        noise=None if read.few_steps else means.noise,
        coarser=read.coarser,
        original=None if same else means.original,
        elsewhere=elsewhere,
        same=same,
        identical=same and _alike(read.a, read.b),
        budget=read.budget,
    )


def _alike(a: SideSource, b: SideSource) -> bool:
    """Whether both sides run on one runtime with equal options."""
    return (a.runtime.title, a.options) == (b.runtime.title, b.options)


def _elsewhere(read: Compared) -> Callable[[Feed], Problem | None]:
    """Returns a function that says why the candidate's runtime refuses the reference's graph. It never does if both
    sides run alike."""
    a, b = read.a, read.b
    if a.model is None or b.model is None or _alike(a, b):
        return lambda _: None
    beside = a.source

    def refusal(feed: Feed) -> Problem | None:
        try:
            with b.runtime.prepare(beside, b.options) as session:
                session.run(feed.values)
        except OnnxsmithError as error:
            return error.problem
        return None

    return refusal


def exact(a: SideSource) -> Session | None:
    """Returns the reference in float64; None if it cannot be widened."""
    if isinstance(a.source, TorchProgram):
        return a.runtime.prepare(programs.in_double(a.source))
    return None if a.model is None else float64_session.in_double(a.model)


def _arbiter(a: SideSource, b: SideSource) -> Arbiter | None:
    """Returns an arbiter with the reference in float64, and the candidate if it is a graph."""
    program, graph, other = a.source, a.model, b.model
    if isinstance(program, TorchProgram):
        return Arbiter(lambda: a.runtime.prepare(programs.in_double(program)))
    if graph is None or other is None:
        return None

    def candidate() -> Session | None:
        session = float64_session.in_double(other)
        return session and under(session, b.interface, a.interface)

    def grown(feed: Feed) -> bool:
        from onnxsmith.comparison.outputs.single_input_layers import only_grown

        return only_grown(a, b, feed)

    if a.source == b.source and not _alike(a, b):
        return Arbiter(lambda: float64_session.in_double(graph), candidate, grown)
    return Arbiter(lambda: float64_session.in_double(graph), candidate)


def _probe(side: SideSource, model: ir.Model, wanted: Signature) -> Probe:
    """Returns a probe of the side with the port names of `wanted`. Weights keep their names."""
    plain = Options(optimization="disable") if "disable" in side.runtime.levels else side.options
    names = renamed(side.interface, wanted)

    def prepare(changed: ir.Model) -> Session:
        return renamed_view(side.preparer.prepare(changed, plain))

    def extend(model: ir.Model, added: bytes, interface: Signature) -> Session | None:
        if not isinstance(side.source, Path) or not side.is_as_in_file:
            return None
        session = side.preparer.extended(side.source, model, added, interface, plain)
        return None if session is None else renamed_view(session)

    def renamed_view(session: Session) -> Session:
        inputs = {port.name: port.name for port in session.signature.inputs} | {
            port.name: names[port.name] for port in wanted.inputs if port.name in names
        }
        outputs = {names[port.name]: port.name for port in wanted.outputs if port.name in names}
        return View(session, session.signature, inputs, outputs)

    return Probe(model, prepare, extend=extend)


def compared(
    reference: Any,
    candidate: Any,
    *,
    inputs: Inputs,
    sizes: Sizes | None,
    runtime: str | None,
    generate: bool,
    seed: int,
    tolerance: float | None,
    per_layer: bool,
    stack: ExitStack,
    section: Section = WHOLE,
    steps: int = 0,
    state: Sequence[str] = (),
    free: Sequence[str] = (),
    thorough: bool = False,
) -> Compared:
    """Reads both sides, which end with `stack`; the other arguments are as in `compare`.

    Raises:
        OnnxsmithError: the errors of loading either side; `verify/…` if their interfaces do not match;
            `compare/no-part` and `edit/…` if a side has no such section; `compare/state` if `state` names no pair
            of ports, or none is found.
    """
    first = side(reference, runtime, stack, in_pieces=per_layer)
    second = side(candidate, runtime, stack, in_pieces=per_layer, beside=first)
    if section:
        first, second = sections(section, first, second)
    a, b, optional = with_common_inputs(*as_programs(first, second))
    notes = (*a.notes, *b.notes, *optional, *check_pairing(a, b))
    calls = Calls(fed_back(state, a, b), steps) if steps or state else None
    feeds = user_inputs.inputs(inputs, a.interface, state=calls.state if calls is not None else ())
    a, b = _with_fixed_defaults(a, b, feeds, calls)
    a, b, clauses, notes = _without_draws(a, b, notes)
    for one in (a, b):
        stack.callback(one.close)
    tolerances, generator, coarser, few_steps = from_graphs(a, b)
    if tolerance is not None:
        tolerances = {port.name: asked(tolerance) for port in a.interface.outputs}
    for one in (a, b):
        if one.only_input is not None and not feeds:
            feeds, generate = _saved(one, a), False
    size_limits.refuse_unknown(sizes, a.interface, b.interface)
    own = a.interface.related(b.interface.relations)
    meant = {name: one for name, one in b.interface.ranges.items() if name in size_limits.names(own)}
    generator = generator.under(replace(own, ranges={**meant, **own.ranges}))
    known = free_values.of_model(a.model) if a.model is not None else Free()
    if b.model is not None:
        theirs = {mine.name: port.name for port, mine in paired(b.interface.outputs, a.interface.outputs)}
        known = free_values.of_model(b.model).renamed(theirs).joined(known)
    plan = Plan(
        generator,
        feeds,
        known=user_inputs.sizes(sizes),
        start=a.example_sizes,
        generate=generate,
        seed=seed,
        free=known.joined(free_values.read(free, [port.name for port in a.interface.outputs])),
    )
    budget, clauses = Budget(thorough=thorough), (*clauses, *other_order(a, b))
    return Compared(a, b, plan, tolerances, tolerance, notes, coarser, few_steps, calls, budget, clauses)


def _with_fixed_defaults(
    a: SideSource, b: SideSource, feeds: Sequence[Feed], calls: Calls | None
) -> tuple[SideSource, SideSource]:
    """Returns both sides with constants in place of the optional inputs that get no value."""
    given = {name for feed in feeds for name in feed.values} | (calls.state if calls is not None else frozenset())
    names = renamed(b.interface, a.interface)
    return with_fixed_defaults(a, given), with_fixed_defaults(b, {names[name] for name in given if name in names})


def _without_draws(
    a: SideSource, b: SideSource, notes: tuple[str, ...]
) -> tuple[SideSource, SideSource, tuple[str, ...], tuple[str, ...]]:
    """Returns both graphs with fixed numbers instead of random ones, if there are any, with clauses and notes on
    that."""
    if a.model is None or b.model is None or not random_draws.nodes(a.model):
        return a, b, (), notes
    fixed = random_draws.fixed(a.model, b.model)
    if fixed is None:
        return a, b, (), notes
    first, second = (replace(one, source=model, model=model) for one, model in zip((a, b), fixed.pair, strict=True))
    return first, second, (fixed.untried,) if fixed.untried else (), (*notes, fixed.note)


def _saved(bundle: SideSource, a: SideSource) -> tuple[Feed, ...]:
    """Returns the input in a bundle, with the reference's names."""
    names = renamed(bundle.interface, a.interface)
    held = bundle.only_input or {}
    values = {mine: held[theirs] for mine, theirs in names.items() if theirs in held}
    return (Feed(f"the input in {bundle.label}", {}, values),)


def _may_differ_inside(a: SideSource, b: SideSource) -> bool:
    """Whether one of two runtimes may quantise tensors that the other computes in floats."""
    return type(a.runtime) is not type(b.runtime) and a.inferred is not None and leaves_activations_open(a.inferred)


def from_graphs(a: SideSource, b: SideSource) -> tuple[Mapping[str, Rounding], Generator, Mapping[str, float], bool]:
    """Takes tolerances and input values from the ONNX graphs; of two tolerances the larger. For two torch modules a
    number of operations is assumed. Also returns how many times coarser the second side computes, by its number of
    operations, and whether only one side quantises, or may do so."""
    graphs = [one.inferred for one in (a, b) if one.inferred is not None]
    if not graphs:
        return uncounted(a.interface), Generator(a.interface), {}, False
    few = [quantises(graph) for graph in graphs]
    alone = any(few) and (not (len(graphs) == 2 and all(few)) or _may_differ_inside(a, b))
    found = Generator.for_model(graphs[0])
    for graph in graphs[1:]:
        found = replace(found, numbers=found.numbers.with_those_of(numbers(graph)))
    new = {theirs.name: mine.name for theirs, mine in paired(found.signature.inputs, a.interface.inputs)}
    tolerances: dict[str, Rounding] = {}
    coarser: dict[str, float] = {}
    for graph in graphs:
        outputs = {x.name: y.name for x, y in paired(signature(graph).outputs, a.interface.outputs)}
        for name, one in roundings(graph, scales={} if alone else None).items():
            port = outputs.get(name, name)
            before = tolerances.get(port, one)
            coarser[port] = one.tolerance / before.tolerance if before.tolerance else 1.0
            tolerances[port] = max(one, before, key=lambda rounding: rounding.tolerance)
    return tolerances, found.renamed(new, a.interface), coarser, alone
