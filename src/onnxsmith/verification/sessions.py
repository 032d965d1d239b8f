"""Compares one ONNX model with another on one runtime: prepares both sides and verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Preparer, Session
from onnxsmith.verification import (
    float64_session,
    foreign_nodes,
    intermediate_outputs,
    random_draws,
    runtime_choice,
    single_precision,
)
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.explore import Plan, Run
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.noise import Noise
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import Rounding, asked, roundings
from onnxsmith.verification.verify import Evidence, Side, verify


def verify_models(
    reference: Path | ir.Model,
    candidate: Path | ir.Model,
    settings: Verify = Verify(),
    *,
    given: tuple[Feed, ...] = (),
    generate: bool = True,
    names: tuple[str, str] = ("the original model", "the new model"),
) -> Verification:
    """Runs both models on one runtime and compares every output, on `given` and on generated inputs. See `verify` for
    the errors.

    If the runtime optimises models, both are first compared without optimisation, where kernels differ least, and then
    with it, on some of the same inputs. If the inputs show too little, those of other seeds are tried. If the model has
    nodes that draw random numbers, or nodes that the runtime does not know, the parts around them are compared, and a
    note says so.
    """
    pair: tuple[Path | ir.Model, Path | ir.Model] = (reference, candidate)
    notes: list[str] = []
    clauses: list[str] = []
    read = (_read_once(reference), _read_once(candidate))
    if random_draws.nodes(load(read[0])):
        fixed = _without_draws(*read)
        pair = read = fixed.pair
        notes.append(fixed.note)
        clauses += [fixed.untried] if fixed.untried else []

    def on(name: str) -> Verification:
        found = _verified(pair, read, name, names, settings, given, generate)
        for more in range(1, _SEEDS if generate else 1):
            if found.differs or not found.unsure:
                break
            other = replace(settings, seed=settings.seed + more)
            found = _verified(pair, read, name, names, other, given, generate)
            if not found.unsure:
                note = f"the inputs of seed {settings.seed} show too little, those of seed {other.seed} were used"
                found = replace(found, notes=(*found.notes, note))
        return found

    try:
        found, choice = runtime_choice.judged(settings.runtime, pair, on, deciding=1)
    except runtime_choice.OfferedError:
        raise
    except OnnxsmithError as error:
        lacks = error.problem.id in runtime_choice.LACKS or foreign_nodes.holds_foreign(load(read[0]))
        cut = foreign_nodes.around(load(read[0]), load(read[1]), settings.runtime) if lacks else None
        if cut is None:
            raise
        pair = read = cut.pair
        notes.append(cut.note)
        found, choice = on(cut.runtime), cut.choice(error.problem)
    clauses += [choice.clause] if choice.clause else []
    if settings.tolerance is None:
        found = single_precision.sharpened(found, lambda: _in_single(read, settings, given, generate, names))
    return replace(found, notes=(*notes, *found.notes), untried=(*found.untried, *clauses))


_MOST_HELD = 1 << 26
"""Bytes of the largest file whose model is held while it is verified. A choice: 64 MiB. Of a larger one the memory
counts more than the time of reading it again, which is little beside that of running it."""


def _read_once(source: Path | ir.Model) -> Path | ir.Model:
    """The model of a file, for all that look at it without changing it; a large file itself, which each reads anew. The
    runtimes read the file itself."""
    if isinstance(source, ir.Model) or not source.is_file() or source.stat().st_size > _MOST_HELD:
        return source
    return load(source)


def _in_single(
    pair: tuple[Path | ir.Model, Path | ir.Model],
    settings: Verify,
    given: tuple[Feed, ...],
    generate: bool,
    names: tuple[str, str],
) -> Verification | None:
    """The comparison of float32 copies; None if there are none."""
    copies = [single_precision.single(load(source)) for source in pair]
    if copies[0] is None or copies[1] is None:
        return None
    feeds = single_precision.feeds_of(given)
    return verify_models(copies[0], copies[1], settings, given=feeds, generate=generate, names=names)


_SEEDS = 3
"""Seeds whose inputs are tried until a check can tell. A choice: inputs may miss a threshold that others meet."""


def _verified(
    pair: tuple[Path | ir.Model, Path | ir.Model],
    read: tuple[Path | ir.Model, Path | ir.Model],
    name: str,
    names: tuple[str, str],
    settings: Verify,
    given: tuple[Feed, ...],
    generate: bool,
) -> Verification:
    """Compares the pair on the runtime called `name`. `read` are their models, if these are held."""
    model = load(read[0])
    with stage("shapes"):
        known_shapes, _ = inferred(model)
        generator = Generator.for_model(known_shapes).under(signature(model))
        plan = Plan(generator, given, sizes(settings.sizes), generate=generate, seed=settings.seed)
        tolerances = roundings(known_shapes)
        if settings.tolerance is not None:
            tolerances = {output: asked(settings.tolerance) for output in tolerances}
    with stage("verify"), runtimes.get(name).preparer(keep=_KEPT) as preparer:
        return _Pair(pair, read, names, name, preparer, tolerances).verified(plan)


def _without_draws(reference: Path | ir.Model, candidate: Path | ir.Model) -> random_draws.Fixed:
    """Both models with fixed numbers in place of random ones.

    Raises:
        OnnxsmithError: `verify/nondeterministic` if the models' opset cannot express fixed numbers.
    """
    fixed = random_draws.fixed(load(reference), load(candidate))
    if fixed is None:
        raise _random(random_draws.nodes(load(reference)))
    return fixed


_Probes = tuple[Probe, Probe]
"""Of the reference, to measure the effect of rounding, and of the candidate, to plant faults."""
_Sessions = tuple[Session, Session]


@dataclass(frozen=True)
class _Pair:
    """Two models that one runtime compares; `preparer` keeps all their sessions in one process."""

    sources: tuple[Path | ir.Model, Path | ir.Model]
    read: tuple[Path | ir.Model, Path | ir.Model]
    """Their models, if these are held."""
    names: tuple[str, str]
    runtime: str
    preparer: Preparer
    tolerances: Mapping[str, Rounding]

    def verified(self, plan: Plan) -> Verification:
        """Compares without the runtime's optimisation, if it has any, and then with it."""
        chosen, options = runtimes.parse(self.runtime)
        has_levels = options == Options() and "disable" in chosen.levels
        if has_levels:
            options = Options(optimization="disable")
        with self._probes(options) as probes:
            return (
                self._at_both_levels(plan, options, probes) if has_levels else self._strictly(plan, options, probes)[1]
            )

    def _strictly(self, plan: Plan, options: Options, probes: _Probes) -> tuple[_Sessions, Verification, list[Run]]:
        """Compares with `options`, with more outputs if those of the models show too little."""
        a, b = (self.preparer.prepare(source, options) for source in self.sources)
        runs: list[Run] = []
        found = self._compared((a, b), plan, probes, on_run=runs.append)
        if not found.differs and found.power is not None and not found.power.still and found.unsure:
            found = self._with_intermediate_tensors(plan, runs, found, options)
        return (a, b), found, runs

    def _at_both_levels(self, plan: Plan, options: Options, probes: _Probes) -> Verification:
        """Compares with `options`, which switch the optimisations off, and on some of these inputs with them on. The
        probes run without optimisations both times."""
        (a, b), strict, runs = self._strictly(plan, options, probes)
        if strict.differs:
            return strict
        probes[1].close()  # its session takes memory
        some = replace(plan, given=tuple(run.feed for run in spread(runs)), generate=False)
        try:
            usual = self._compared((a.at("all"), b.at("all")), some, probes, plant=False)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
            said = self._failure((a.at("all"), b.at("all")), some.given) or _said(error.problem)
            note = f"compared with the optimisations of {self.runtime} off only: with them, {said}"
            return replace(strict, notes=(*strict.notes, note))
        note = (
            f"with the optimisations of {self.runtime} off the outputs agree {agreement(strict)}; with them on, "
            f"on {len(usual.runs)} of the inputs, {agreement(usual)}"
        )
        return both_levels(strict, usual, note)

    def _failure(self, sessions: Sequence[Session], feeds: Sequence[Feed]) -> str:
        """A clause about the model and the input with which the runtime fails; empty if it does not fail again."""
        for name, session in zip(self.names, sessions, strict=True):
            for feed in feeds:
                try:
                    session.run(feed.values)
                except OnnxsmithError as error:
                    return f"{name} failed on {feed.label}: {_said(error.problem)}"
        return ""

    def _with_intermediate_tensors(
        self, plan: Plan, runs: Sequence[Run], strict: Verification, options: Options
    ) -> Verification:
        """Compares again with intermediate tensors as outputs, because the outputs alone show too little. Returns
        `strict` if this shows no more."""
        pair = intermediate_outputs.with_common_tensors(load(self.read[0]), load(self.read[1]))
        if pair is None:
            return strict
        opened = replace(self, sources=pair, read=pair, tolerances=roundings(pair[0]) | dict(self.tolerances))
        few = replace(plan, given=tuple(run.feed for run in runs[:2]), generate=False)
        try:
            a, b = (self.preparer.prepare(source, options) for source in pair)
            with opened._probes(options) as probes:
                found = opened._compared((a, b), few, probes)
        except OnnxsmithError:
            return strict
        if not found.equal:
            return strict
        extra = len(found.outputs) - len(strict.outputs)
        note = f"the outputs alone show too little ({strict.unsure[0]}): {extra} intermediate tensors agree as well"
        return replace(strict, equal=True, unsure=(), power=found.power, notes=(*strict.notes, note))

    @contextmanager
    def _probes(self, options: Options) -> Iterator[_Probes]:
        """A probe of each model, for comparisons at any level: they run with `options`."""

        def prepare(model: ir.Model) -> Session:
            return self.preparer.prepare(model, options)

        with Probe(self.read[0], prepare) as noise, Probe(self.read[1], prepare) as faults:
            yield noise, faults

    def _compared(
        self,
        sessions: _Sessions,
        plan: Plan,
        probes: _Probes,
        *,
        on_run: Callable[[Run], None] | None = None,
        plant: bool = True,
    ) -> Verification:
        """One comparison; faults are planted if `plant` is set."""
        noise, faults = probes
        with closing(Arbiter(partial(_in_double, self.read[0]), partial(_in_double, self.read[1]))) as arbiter:
            evidence = Evidence(Noise(noise), faults=faults if plant else None, arbiter=arbiter)
            ours, theirs = (
                Side(f"{name} on {self.runtime} ({session.provider})", session)
                for name, session in zip(self.names, sessions, strict=True)
            )
            return verify(ours, theirs, plan, self.tolerances, evidence, on_run=on_run)


def _in_double(source: Path | ir.Model) -> Session | None:
    """One side in float64, which is asked only where the two differ."""
    return float64_session.in_double(load(source))


_KEPT = 8
"""Sessions that one process keeps: both models, a probe of each, and the same four with more outputs."""
_MOST_OPTIMISED = 4
"""Inputs on which the two are compared with optimisation. A choice: the base, other values, and two other sizes."""


def spread(runs: Sequence[Run]) -> list[Run]:
    """A few of the runs: the first, the last, and some between, so that values and sizes vary."""
    if len(runs) <= _MOST_OPTIMISED:
        return list(runs)
    return [runs[index * (len(runs) - 1) // (_MOST_OPTIMISED - 1)] for index in range(_MOST_OPTIMISED)]


def _said(found: Problem) -> str:
    """A problem in one clause."""
    return ": ".join(filter(None, (found.what, found.where, found.why[:_LONG])))


_LONG = 300
"""Characters of a runtime's message in a note. A choice."""


def both_levels(main: Verification, other: Verification, note: str) -> Verification:
    """Combines comparisons at two optimisation levels: each output gets the worse result. `other` was made on some of
    the inputs of `main`."""
    outputs = tuple(
        theirs if (not theirs.equal, theirs.worst_rel) > (not ours.equal, ours.worst_rel) else ours
        for ours, theirs in zip(main.outputs, other.outputs, strict=True)
    )
    return replace(
        main,
        equal=main.equal and other.equal,
        outputs=outputs,
        notes=tuple(dict.fromkeys((*main.notes, *other.notes, note))),
        unsure=() if main.differs or other.differs else tuple(dict.fromkeys((*main.unsure, *other.unsure))),
    )


def agreement(part: Verification) -> str:
    """How closely the outputs of a comparison agree, in words."""
    if part.exact:
        return "to the bit"
    return "within rounding" if not part.differs else "not"


def _random(nodes: Sequence[ir.Node]) -> OnnxsmithError:
    return problem(
        "verify/nondeterministic",
        f"the model draws random numbers: {several(len(nodes), 'node')}",
        where=", ".join(f"{node.op_type} {walk.node_label(node)}" for node in nodes[:3]),
        why="two runs on the same input differ, and this opset has no operators to put fixed numbers in their place",
        fix="convert the model to opset 9 or newer, make the random numbers inputs, or go on with --no-verify",
    )
