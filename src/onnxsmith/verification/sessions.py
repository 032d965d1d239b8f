"""Compares one ONNX model with another on one runtime: prepares both sides and verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Preparer, Session
from onnxsmith.verification import free_values, random_draws, runtime_choice
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.count_runs import with_counts_of
from onnxsmith.verification.explore import Plan, Run
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.ladder import Subject, climbed
from onnxsmith.verification.optimisation_levels import agreement_at_both, both_levels, on_some
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

    If the runtime optimises models, both are first compared without optimisation, where kernels differ least. Then they
    are compared with optimisation, on some of the same inputs. If the result is unsure, the rungs of `ladder` are
    tried. If the model has nodes that draw random numbers, or nodes that the runtime does not know, the parts around
    them are compared, and a note says so.
    """
    pair: tuple[Path | ir.Model, Path | ir.Model] = (reference, candidate)
    notes: list[str] = []
    clauses: list[str] = []
    read = (_read_once(reference), _read_once(candidate))
    is_fixed = bool(random_draws.nodes(load(read[0])))
    if is_fixed:
        fixed = _without_draws(*read)
        pair = read = fixed.pair
        notes.append(fixed.note)
        clauses += [fixed.untried] if fixed.untried else []

    def on(name: str) -> Verification:
        with stage("shapes"):
            plan, tolerances = _prepared(load(read[0]), settings, given, generate, other=read[1])
        with runtimes.get(name).preparer(keep=_KEPT) as preparer:
            budget = Budget(thorough=settings.thorough)
            subject = _Pair(pair, read, names, name, preparer, tolerances, plan, settings, budget)
            found = climbed(subject, subject.compared())
        return _loaded(found, name, reference, candidate, names) if is_fixed else found

    try:
        found, choice = runtime_choice.judged(settings.runtime, pair, on, deciding=1)
    except runtime_choice.OfferedError:
        raise
    except OnnxsmithError as error:
        from onnxsmith.verification import foreign_nodes

        lacks = error.problem.id in runtime_choice.LACKS or foreign_nodes.holds_foreign(load(read[0]))
        cut = foreign_nodes.around(load(read[0]), load(read[1]), settings.runtime) if lacks else None
        if cut is None:
            raise
        pair = read = cut.pair
        is_fixed = False  # the parts are run on another runtime
        notes.append(cut.note)
        found, choice = on(cut.runtime), cut.choice(error.problem)
    clauses += [choice.clause] if choice.clause else []
    return replace(found, notes=(*notes, *found.notes), untried=(*found.untried, *clauses))


_MOST_HELD = 1 << 26
"""Limits the size of a file whose model is held while it is verified, in bytes. A choice: 64 MiB. A larger file is read
again: this saves memory, and takes little time compared with running the model."""


def _read_once(source: Path | ir.Model) -> Path | ir.Model:
    """Returns the model of a file, for code that does not change the model. For a large file, returns the path itself,
    and the file is read again where it is needed. The runtimes read the file itself."""
    if isinstance(source, ir.Model) or not source.is_file() or source.stat().st_size > _MOST_HELD:
        return source
    return load(source)


def _prepared(
    model: ir.Model, settings: Verify, given: tuple[Feed, ...], generate: bool, *, other: Path | ir.Model
) -> tuple[Plan, Mapping[str, Rounding]]:
    """Returns the plan of inputs, and the tolerances of the outputs. Counts are tried at the numbers of the `other`
    model, too."""
    known_shapes, _ = inferred(model)
    generator = Generator.for_model(known_shapes).under(signature(model))
    generator = with_counts_of(generator, other)
    tolerances = roundings(known_shapes)
    if settings.tolerance is not None:
        tolerances = {output: asked(settings.tolerance) for output in tolerances}
    free = free_values.of_model(model).joined(free_values.read(settings.free))
    return Plan(generator, given, sizes(settings.sizes), generate=generate, seed=settings.seed, free=free), tolerances


def _without_draws(reference: Path | ir.Model, candidate: Path | ir.Model) -> random_draws.Fixed:
    """Returns both models with fixed numbers in place of random ones.

    Raises:
        OnnxsmithError: `verify/nondeterministic` if the models' opset cannot express fixed numbers.
    """
    fixed = random_draws.fixed(load(reference), load(candidate))
    if fixed is None:
        raise _random(random_draws.nodes(load(reference)))
    return fixed


def _loaded(
    found: Verification, name: str, reference: Path | ir.Model, candidate: Path | ir.Model, names: tuple[str, str]
) -> Verification:
    """Says if the runtime does not load the candidate itself, of which a copy without draws was run. If it loads the
    reference, the comparison is unsure."""

    def refusal(source: Path | ir.Model) -> str:
        try:
            with runtimes.get(name).prepare(source):
                return ""
        except OnnxsmithError as error:
            return error.problem.what

    why = refusal(candidate)
    if not why:
        return found
    clause = f"{names[1]} was run with fixed numbers only, because {name} does not load it with its random ones: {why}"
    if refusal(reference):
        return replace(found, untried=(*found.untried, clause))
    return replace(found, equal=False, unsure=(*found.unsure, clause))


_Probes = tuple[Probe, Probe]
"""Holds two probes: of the reference, to measure the effect of rounding, and of the candidate, to plant faults."""
_Sessions = tuple[Session, Session]


@dataclass(frozen=True)
class _Pair(Subject):
    """Compares two models on one runtime; `preparer` keeps all their sessions in one process."""

    sources: tuple[Path | ir.Model, Path | ir.Model]
    read: tuple[Path | ir.Model, Path | ir.Model]
    """Holds the models of both files, or the paths of large files."""
    names: tuple[str, str]
    runtime: str
    preparer: Preparer
    tolerances: Mapping[str, Rounding]
    plan: Plan
    settings: Verify
    budget: Budget
    runs: list[Run] = field(default_factory=list)
    """Lists the runs of the comparison that decides. The comparison fills the list."""
    left_open: list[str] = field(default_factory=list)
    """Lists the doubts that the comparison with the runtime's optimisation leaves. The comparison fills the list."""
    is_opened: bool = False
    """Whether intermediate tensors are outputs. Such outputs are compared without optimisation only."""

    @property
    def seed(self) -> int:
        """Returns the seed of the generated inputs."""
        return self.plan.seed

    def compared(self) -> Verification:
        """Compares without the runtime's optimisation, if the runtime has any, and then with optimisation."""
        chosen, options = runtimes.parse(self.runtime)
        has_levels = options == Options() and "disable" in chosen.levels
        if has_levels:
            options = Options(optimization="disable")
        with stage("verify"), self._probes(options) as probes:
            a, b = (
                self.preparer.prepare(source, options, read=None if isinstance(read, Path) else read)
                for source, read in zip(self.sources, self.read, strict=True)
            )
            strict = self._compared((a, b), self.plan, probes, on_run=self.runs.append)
            if self.is_opened:
                unsure = (*strict.unsure, *self.left_open)
                return replace(strict, equal=strict.equal and not unsure, unsure=() if strict.differs else unsure)
            if strict.differs or not has_levels:
                return strict
            return self._with_optimisation((a, b), strict, probes)

    def opened(self) -> Self | None:
        """Returns the pair with common intermediate tensors as outputs."""
        from onnxsmith.verification import intermediate_outputs

        pair = intermediate_outputs.with_common_tensors(load(self.read[0]), load(self.read[1]))
        if pair is None or self.settings.tolerance is not None:
            return None
        tolerances = roundings(pair[0]) | dict(self.tolerances)
        few = replace(self.plan, given=tuple(run.feed for run in self.runs[:2]), generate=False)
        return replace(self, sources=pair, read=pair, tolerances=tolerances, plan=few, runs=[], is_opened=True)

    def seeded(self, seed: int) -> Self | None:
        """Returns the pair on the generated inputs of another seed."""
        if not self.plan.generate:
            return None
        return replace(self, plan=replace(self.plan, seed=seed), runs=[], left_open=[])

    def single(self) -> Subject | None:
        """Returns the pair in float32."""
        if self.settings.tolerance is not None:
            return None
        from onnxsmith.verification import single_precision

        copies = [single_precision.single(load(source)) for source in self.read]
        if copies[0] is None or copies[1] is None:
            return None
        return _Copies((copies[0], copies[1]), self.names, self.plan, self.settings)

    def _with_optimisation(self, sessions: _Sessions, strict: Verification, probes: _Probes) -> Verification:
        """Compares on some of the same inputs with optimisation. The probes run without optimisation at both levels."""
        a, b = (session.at("all") for session in sessions)
        probes[1].close()  # its session takes memory
        some = on_some(self.plan, self.runs)
        try:
            usual = self._compared((a, b), some, probes, plant=False)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
            said = self._failure((a, b), some.given) or _said(error.problem)
            note = f"compared only without the optimisations of {self.runtime}, because with the optimisations {said}"
            return replace(strict, notes=(*strict.notes, note))
        self.left_open.extend(usual.unsure)
        return both_levels(strict, usual, agreement_at_both(self.runtime, strict, usual, ("off", "on")))

    def _failure(self, sessions: Sequence[Session], feeds: Sequence[Feed]) -> str:
        """Returns a clause about the model and the input with which the runtime fails; "" if the runtime does not fail
        again."""
        for name, session in zip(self.names, sessions, strict=True):
            for feed in feeds:
                try:
                    session.run(feed.values)
                except OnnxsmithError as error:
                    return f"{name} failed on {feed.label}: {_said(error.problem)}"
        return ""

    @contextmanager
    def _probes(self, options: Options) -> Iterator[_Probes]:
        """Yields a probe of each model, for comparisons at any level; the probes run with `options`."""

        def prepare(model: ir.Model) -> Session:
            return self.preparer.prepare(model, options)

        def extend(source: Path | ir.Model, model: ir.Model, added: bytes, interface: Signature) -> Session | None:
            if isinstance(source, ir.Model):
                return None
            return self.preparer.extended(source, model, added, interface, options)

        noise, faults = (
            Probe(read, prepare, extend=partial(extend, source))
            for source, read in zip(self.sources, self.read, strict=True)
        )
        with noise, faults:
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
        """Makes one comparison; plants faults if `plant` is set."""
        noise, faults = probes
        with closing(Arbiter(partial(_in_double, self.read[0]), partial(_in_double, self.read[1]))) as arbiter:
            evidence = replace(Evidence.of(noise, faults, arbiter, plant=plant), sides=noise, budget=self.budget)
            ours, theirs = (
                Side(f"{name} on {self.runtime} ({session.provider})", session)
                for name, session in zip(self.names, sessions, strict=True)
            )
            return verify(ours, theirs, plan, self.tolerances, evidence, on_run=on_run)


@dataclass(frozen=True)
class _Copies(Subject):
    """Compares the float32 copies of a pair, on the runtime that is chosen for the copies."""

    pair: tuple[ir.Model, ir.Model]
    names: tuple[str, str]
    plan: Plan
    settings: Verify

    def compared(self) -> Verification:
        """Compares the copies, with their further comparisons."""
        from onnxsmith.verification import single_precision

        given, settings = single_precision.feeds_of(self.plan.given), replace(self.settings, seed=self.plan.seed)
        return verify_models(*self.pair, settings, given=given, generate=self.plan.generate, names=self.names)


def _in_double(source: Path | ir.Model) -> Session | None:
    """Prepares one side in float64, to judge outputs in which the two sides differ."""
    from onnxsmith.verification import float64_session

    return float64_session.in_double(load(source))


_KEPT = 10
"""Counts the sessions that one process keeps: both models, a probe of each, the conditions of branches, and the same
five with more outputs."""


def _said(found: Problem) -> str:
    """Returns a problem in one clause."""
    return ": ".join(filter(None, (found.what, found.where, found.why[:_LONG])))


_LONG = 300
"""Limits the characters of a runtime's message in a note. A choice."""


def _random(nodes: Sequence[ir.Node]) -> OnnxsmithError:
    return problem(
        "verify/nondeterministic",
        f"the model draws random numbers: {several(len(nodes), 'node')}",
        where=", ".join(f"{node.op_type} {walk.node_label(node)}" for node in nodes[:3]),
        why=(
            "two runs on the same input differ, and this opset has no operators that could replace the random "
            "numbers by fixed ones"
        ),
        fix="convert the model first: `onnxsmith opset MODEL 13 -o newer.onnx --no-verify`; or make the random numbers "
        "inputs; or skip the verification: --no-verify",
    )
