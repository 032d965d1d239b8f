"""`bisect`: finds the nodes that must stay in float32 while the rest of a model is float16 or bfloat16."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import Clock, advance, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.quantisation import NO_KERNEL, Precision
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Verify
from onnxsmith.base.spelling import in_python
from onnxsmith.base.words import pasted, rounded_up
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.dim_ranges import Size, Sizes, written
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.precision import keep_list, narrowable_nodes, variant_trials
from onnxsmith.precision import kept_node_reasons as why
from onnxsmith.precision.keep_list import bare, matching, named
from onnxsmith.precision.keep_list_output import Delivery, checked
from onnxsmith.precision.keep_list_search import minimal
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import NARROW, Operators, Units, find
from onnxsmith.precision.variant_trials import Trials
from onnxsmith.precision.weight_counts import float32_weights, in_file, own_weights, replaceable
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._lenient import checked as checked_model
from onnxsmith.runtimes.base import Runtime, Session
from onnxsmith.verification.explore import Explorer, Plan, Run
from onnxsmith.verification.inputs import size_limits
from onnxsmith.verification.inputs import user_inputs as given_inputs
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.observed_outputs import declared_as_run
from onnxsmith.verification.output_declarations import with_clauses
from onnxsmith.verification.rounding import Rounding, asked, roundings
from onnxsmith.verification.verification_verdict import ending, problems, verdict
from onnxsmith.verification.verify import Side, verify

_OTHER_SEED = 1000
"""Added to the seed in the final check, so that its inputs differ from those of the search."""
_ROUNDS = 8
"""The most searches. Each further search also uses the input on which the last check failed. A choice."""


@in_python
@identifies("source")
def bisect(
    source: Source,
    output: str | Path | None = None,
    *,
    to: str = "float16",
    tolerance: float | None = None,
    keep: Iterable[str] = (),
    inputs: Sequence[str] = (),
    sizes: Sizes | None = None,
    only_given: bool = False,
    runtime: str | None = None,
    any_runtime: bool = False,
    model: str | Path | None = None,
    tries: int | None = None,
    seed: int = 0,
) -> Result:
    """Finds the nodes that must stay in float32 if all others compute in `to` (`float16` or `bfloat16`). With these
    nodes the outputs stay within tolerance, and every node in the list is needed. `Result.model` is the mixed model.

    `tolerance` is relative to an output's scale; by default it follows from the graph, as if every node were narrow.
    Nodes in `keep` always stay in float32. `inputs` are texts as on the command line; generated inputs are added unless
    `only_given` is set; `sizes` fixes symbolic dimensions. In the search a narrow node computes in float32 on rounded
    inputs and rounds its outputs, as accelerators do. Unless `any_runtime` is set, the variant that really has the
    narrow dtype also has to pass on `runtime`. At most `tries` variants are tried. The list is written to `output` (as
    JSON if the path ends in .json), the mixed model to `model`.

    Raises:
        OnnxsmithError: `bisect/unknown-dtype`, `bisect/tolerance`, `bisect/tries`, `bisect/opset`,
            `bisect/nothing-to-narrow`, `bisect/unknown-node`, `bisect/no-kernels`, `bisect/none-suffices`;
            `model/…`, `input/…`, `runtime/…`, `verify/…` and `save/…` for problems with these.
    """
    request = Request(
        to,
        tolerance,
        (keep,) if isinstance(keep, str) else tuple(keep),
        tuple(inputs),
        given_inputs.sizes(sizes),
        only_given,
        runtime,
        any_runtime,
        tries,
        seed,
    )
    refuse(request)
    where = str(source) if isinstance(source, str | Path) else "the given model"
    target = None if output is None else checked(Path(output))
    if model is not None:
        checked(Path(model), streams=False)
    with Clock() as clock, ExitStack() as stack:
        with stage("load"):
            loaded = cloned(own_weights(load(source)))
            inside = correct_intermediates(loaded)
            refuse_loss([target, model], [source, loaded, inputs])
            doubts = checked_model(loaded, where=where, file=Path(source) if isinstance(source, str | Path) else None)
        search = _Search(loaded, request, stack)
        search.run()
        mixed = search.trials.variant(search.kept, rounded=False)
        part = search.part(mixed)
        agrees = all(one.equal for one in search.verified) and not part.is_in_vain
        why = "nothing became narrow" if part.is_in_vain else "the variant differs from the model"
        shown = Written({}, why)
        wrong: tuple[str, ...] = ()
        if agrees:
            wrong = declared_as_run(mixed, Verify(sizes=written(sizes), seed=seed), like=loaded)
            with stage("save"):
                shown, nbytes = Delivery(target, model, source).write(search.kept, to, mixed, loaded)
            file = None if model is None else in_file(load(model), NARROW[to])
            part = replace(part, bytes_before=nbytes[0], bytes_after=nbytes[1], file=file)
    checks = tuple(with_clauses(one, inside, *wrong) for one in search.verified)
    report = _report(where, part, checks, (shown, Timing(clock.passed())), doubts, most=search.most)
    return Result(report, mixed if agrees else None, target if agrees else None)


def _report(
    where: str,
    part: Precision,
    verified: tuple[Verification, ...],
    rest: tuple[Part, ...],
    doubts: Sequence[Problem],
    *,
    most: float,
) -> Report:
    last = next((one for one in verified if not one.equal), verified[0])
    in_vain = (_in_vain(where, part, most),) if part.is_in_vain else ()
    return Report(
        "bisect",
        Verdict.FAILED if in_vain else verdict(last),
        (part, *verified, *rest),
        problems=(*doubts, *in_vain, *problems(last)),
        headline=f"{where}: {part.summary()}; {ending(last)}",
    )


def _in_vain(where: str, part: Precision, most: float) -> Problem:
    """Returns the problem that nothing was gained. `most` is the worst difference with everything narrow, relative to
    the scale of an output."""
    fixed = [f"{', '.join(operators)}: {reason}" for reason, operators in part.fixed.items()]
    lacking = sum(one.why == NO_KERNEL for one in part.kept)
    rounded = len(part.kept) - lacking
    kept = [f"{rounded} nodes have to stay in float32 to stay within the tolerance"] if rounded else []
    kept += [f"the runtime has no kernels for {lacking} nodes"] if lacking else []
    remedies = (
        [f"allow the error of the whole model in {part.to}: --tolerance {rounded_up(most)}"] if 0 < most < 1 else []
    )
    remedies = remedies if rounded else []
    remedies += ["search a list for another runtime, which has the kernels: --any-runtime"] if lacking else []
    later = max((int(found[1]) for reason in part.fixed if (found := _LATER.search(reason))), default=0)
    if later:
        newer = f"onnxsmith opset {pasted(where)} {later} -o newer.onnx"
        remedies.append(f"convert the model to a newer opset: `{newer}`, and search newer.onnx")
    return problem(
        "bisect/nothing-narrow",
        f"no node that takes memory or time could be made {part.to}",
        where=f"{where}: {part.narrow} of {part.nodes} nodes, {part.weights_narrow} of {part.weights} weights",
        why="; ".join([*kept, *fixed])[:400] or "no computing node and no weight is in float32",
        fix="; or ".join(remedies) or f"use the model as it is: no other node can be {part.to}",
    ).problem


_LATER = re.compile(r"before opset (\d+)")
"""Matches the opset in the reason why an operator cannot be narrow (`narrowable_nodes`)."""


class _Search:
    """Holds the state of one bisection: the reference, the request, and the variants tried."""

    def __init__(self, loaded: ir.Model, request: Request, stack: ExitStack) -> None:
        self._request = request
        self._to = NARROW[request.to]
        self.name = request.runtime or runtimes.default()
        self.runtime: Runtime = runtimes.get(self.name)
        newer, raising = raised(loaded, request.to)
        plain, trouble = inlined(newer)
        self.model, shape_trouble = inferred(plain)
        self.notes = [text for text in (raising, trouble, shape_trouble, replaceable(self.model)) if text]
        operators = Operators(self.model, self.runtime)
        narrowable_nodes.fill_dtypes(self.model, operators)
        self.units = units_of(self.model, self._to, request, operators)
        self.unsupported: frozenset[str] = frozenset()
        self.kept: tuple[str, ...] = ()
        self.own: dict[str, float] = {}
        self.before, self.most = "", 0.0
        self.verified: tuple[Verification, ...] = ()
        self.seconds = 0.0
        self._interface = signature(loaded)
        self._reference: Session = stack.enter_context(self.runtime.prepare(loaded))
        self.trials = Trials(
            self.model,
            self.units,
            self._to,
            stack.enter_context(self.runtime.preparer()).prepare,
            [],
            self._roundings(),
            most=request.tries,
            told=lambda done: advance("search", done, 0),
        )

    def run(self) -> None:
        """Searches the list and checks it on other inputs. An input on which the check fails is added to the next
        search."""
        with stage("reference"):
            self.trials.runs = self._runs()
        names = self.units.by_name
        self.trials.always = frozenset(
            name for entry in named(self._request.keep) for name in matching(bare(entry), names)
        )
        if not self._request.any_runtime:
            with stage("kernels"):
                refused = variant_trials.without_kernels(self.trials, self.name)
            self.unsupported = frozenset(unit.name for unit in self.units.units if unit.op in refused)
            self.trials.always |= self.unsupported
        begin = time.perf_counter()
        for _ in range(_ROUNDS):
            with stage("search"):
                self._search()
            self.seconds = time.perf_counter() - begin
            if self._passes_check():
                break
        with stage("compare all"):
            whole = self._check(frozenset(), rounded=True)[0]
        self.before = _worst(whole)
        self.most = max((output.worst_rel for output in whole.outputs), default=0.0)

    def _search(self) -> None:
        # Tried before `_order`, which runs the model to rank the nodes.
        if self.trials.passes(frozenset()):
            found: tuple[str, ...] | None = ()
        else:
            found = minimal(self._order(), self.trials.passes)
        if found is None:
            raise self._none_suffices()
        order = {unit.name: unit.index for unit in self.units.units}
        self.kept = tuple(sorted({*found, *self.trials.always}, key=order.__getitem__))

    def _order(self) -> list[str]:
        """Returns the nodes that may be kept, ordered by their own error, the largest first."""
        try:
            self.own = variant_trials.node_errors(
                self.model, self.units, self._to, self.runtime, self.trials.runs[0].feed.values
            )
        except OnnxsmithError as error:
            self.notes.append(f"the nodes were searched in the order of the graph: {error.problem.what}")
        free = [unit for unit in self.units.units if unit.name not in self.trials.always]
        return [unit.name for unit in sorted(free, key=lambda unit: -self.own.get(unit.name, 0.0))]

    def _none_suffices(self) -> OnnxsmithError:
        every = frozenset(unit.name for unit in self.units.units)
        if self.trials.refused and every not in self.trials.seen:
            return problem(
                "bisect/tries",
                f"no variant within tolerance was found in {len(self.trials.seen)} tries",
                fix=f"allow more tries: --tries {4 * len(self.trials.seen)}; or a wider tolerance",
            )
        trial = self.trials.trial(every)
        most = trial.found.worst_rel
        return problem(
            "bisect/none-suffices",
            "no keep-list is enough: even with every node in float32 the outputs are out of tolerance",
            why=f"{trial}; no single node is the cause: {self.name} computes other results for any changed copy of "
            "the model",
            fix="; or ".join(
                [
                    *(["compare on another runtime: --runtime reference"] if self.name != "reference" else []),
                    *([f"allow this difference: --tolerance {rounded_up(most)}"] if 0 < most < 1 else []),
                ]
            )
            or "give a wider --tolerance",
        )

    def _passes_check(self) -> bool:
        """Whether the list passes on inputs that the search did not use. If not, the next search also uses the input
        that failed."""
        with stage("verify"):
            checks = [self._check(self.kept, rounded=True)]
            if checks[0][0].equal and not self._request.any_runtime:
                checks.append(self._check(self.kept, rounded=False))
        self.verified = tuple(part for part, _ in checks)
        part, worst = checks[-1]
        if part.equal:
            return True
        # The typed variant failed where the rounded variant passed: from now on tries run both.
        self.trials.typed |= len(checks) == 2
        run = None if worst is None else Run(worst, self._reference.run(worst.values))
        self.trials.again(run)
        return False

    def _check(self, keep: Iterable[str], *, rounded: bool) -> tuple[Verification, Feed | None]:
        plan = replace(self._plan(), seed=self._request.seed + _OTHER_SEED)
        worst: list[Feed] = []
        how = "rounded" if rounded else "its own kernels"
        with self.runtime.prepare(self.trials.variant(frozenset(keep), rounded=rounded)) as session:
            a = Side(f"the model on {self.name} ({self._reference.provider})", self._reference)
            b = Side(f"its {self._request.to} variant on {self.name} ({session.provider}, {how})", session)
            return verify(a, b, plan, self.trials.roundings, on_worst=worst.append), next(iter(worst), None)

    def _plan(self) -> Plan:
        given = given_inputs.feeds(list(self._request.inputs or ()), self._interface)
        generator = Generator.for_model(self.model).under(self._interface)
        size_limits.refuse_unknown(self._request.sizes, self._interface)
        return Plan(
            generator,
            given=given,
            known=self._request.sizes,
            generate=not self._request.only_given,
            seed=self._request.seed,
        )

    def _runs(self) -> list[Run]:
        explorer = Explorer(self._reference, self._plan(), roundings(self.model))
        runs = list(explorer.runs())
        if not runs:
            raise problem(
                "verify/nothing-compared", "there is no input to compare on", fix="give one: --input inputs.npz"
            )
        explorer.repeated(runs[0])
        return runs

    def _roundings(self) -> dict[str, Rounding]:
        if self._request.tolerance is not None:
            return {port.name: asked(self._request.tolerance) for port in self._interface.outputs}
        whole, _ = inferred(narrowed(self.model, self.units.units, self._to))
        return roundings(whole)

    def part(self, mixed: ir.Model) -> Precision:
        """Returns the report's part on the list and the mixed model."""
        seen = self.trials.seen
        own = [name for name in self.kept if name not in self.trials.always]
        tried = {name: seen.get(frozenset(self.kept) - {name}) for name in own}
        without = {name: str(trial) for name, trial in tried.items() if trial is not None}
        reasons = why.Reasons(self.own, without, self.unsupported)
        by_name = self.units.by_name
        with stage("explain"):
            kept = why.explained(
                self.model, [by_name[name] for name in self.kept], self._to, self.runtime, self.trials.runs, reasons
            )
        before = float32_weights(self.model)
        narrow = before - float32_weights(mixed)
        tolerances = sorted((rounding.tolerance, str(rounding)) for rounding in self.trials.roundings.values())
        return Precision(
            to=self._request.to,
            nodes=walk.count_nodes(self.model),
            candidates=len(self.units.units),
            kept=kept,
            narrow=len(self.units.units) - len(self.kept),
            computing=sum(
                one.op not in variant_trials.MOVING and one.name not in self.kept for one in self.units.units
            ),
            other=self.units.other,
            weights=before.count,
            weights_narrow=narrow.count,
            weights_bytes=before.nbytes,
            weights_bytes_narrow=narrow.nbytes,
            fixed={reason: dict(operators) for reason, operators in self.units.fixed.items()},
            tolerance=tolerances[-1][1] if tolerances else "",
            before=self.before,
            after=_worst(self.verified[0]),
            tries=len(seen),
            remembered=self.trials.remembered,
            sessions=self.trials.sessions,
            checked=sum(1 for trial in tried.values() if trial is not None and not trial.passed),
            seconds=self.seconds,
            notes=tuple(self.notes),
        )


def _worst(part: Verification) -> str:
    """Names the output that differs most, and by how much."""
    if not part.outputs:
        return "no outputs"
    worst = max(part.outputs, key=lambda output: (not output.equal, output.worst_rel))
    far = f"a difference of {worst.worst_rel:.2g} of the scale of {worst.name}"
    return far if worst.equal else f"{far}: {worst.reason}"


@dataclass(frozen=True)
class Request:
    """The options of a bisection. See `bisect`."""

    to: str = "float16"
    tolerance: float | None = None
    keep: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    sizes: Mapping[str, Size] = field(default_factory=dict)
    only_given: bool = False
    runtime: str | None = None
    any_runtime: bool = False
    tries: int | None = None
    seed: int = 0


def refuse(request: Request) -> None:
    """Refuses an unknown dtype, a tolerance that is negative or not finite, and fewer than one try."""
    if request.to not in NARROW:
        raise problem(
            "bisect/unknown-dtype", f"{request.to!r} is not a possible dtype", fix=f"one of: {', '.join(NARROW)}"
        )
    if request.tolerance is not None and not (math.isfinite(request.tolerance) and request.tolerance >= 0):
        raise problem(
            "bisect/tolerance",
            f"a tolerance of {request.tolerance:g} is not valid",
            fix="give a fraction of an output's scale: --tolerance 0.01; or leave it out",
        )
    if request.tries is not None and request.tries < 1:
        raise problem(
            "bisect/tries", f"{request.tries} tries find nothing", fix="give at least 1, or leave it out for no limit"
        )


_OLDEST = {"float16": 6, "bfloat16": 13}
"""The first opset in which Cast takes a dtype as a number, and in which operators have bfloat16."""


_RAISED = 18
"""The opset to which an older model is raised. A choice: the earliest in which all of today's runtimes have kernels of
both dtypes."""


def raised(model: ir.Model, to: str) -> tuple[ir.Model, str]:
    """Returns the model at an opset that has the dtype, and a note if the opset had to be raised.

    Raises: OnnxsmithError: `bisect/opset` if the model cannot be raised.
    """
    now = opsets.of(model)
    if now >= _OLDEST[to]:
        return model, ""
    try:
        made = opsets.convert(model, _RAISED)
    except OnnxsmithError as error:
        raise problem(
            "bisect/opset",
            f"opset {now} is too old for {to}, and the model cannot be converted to opset {_RAISED}",
            where=error.problem.where,
            why=f"{error.problem.what}: {error.problem.why}".rstrip(": "),
            fix=f"export the model again with opset {_RAISED} or newer; {to} needs at least opset {_OLDEST[to]}",
        ) from error
    return made, f"opset {now} is too old for {to}: the model was first converted to opset {_RAISED}"


def units_of(model: ir.Model, to: ir.DataType, request: Request, operators: Operators) -> Units:
    """Finds the nodes of the model that can be narrow.

    Raises:
        OnnxsmithError: `bisect/nothing-to-narrow`, `bisect/unknown-node`.
    """
    units = find(model, to, operators)
    if not units.units:
        fixed = [f"{', '.join(operators)}: {reason}" for reason, operators in units.fixed.items()]
        raise problem(
            "bisect/nothing-to-narrow",
            f"no node of the model can become {request.to}",
            why="; ".join(fixed)[:400]
            or "no node reads or computes float32: the model already uses a narrow dtype, or has no floats",
            fix="start from the float32 model"
            if fixed
            else (
                "if the model was already made narrow, start from its float32 model; a model without floats cannot "
                "become narrower"
            ),
        )
    unknown = [name for name in named(request.keep) if not matching(bare(name), units.by_name)]
    if unknown:
        said = keep_list.unknown_names(unknown, units.by_name, "no node that can become narrow is called")
        raise problem(
            "bisect/unknown-node",
            said.what,
            where=said.where,
            why=f"the list was made for another model, or for an earlier version of this one{said.near}",
            fix="`onnxsmith inspect MODEL --nodes` lists the names; or run bisect without --keep",
        )
    return units
