"""Runs the command `check`: asks targets whether they take a model, names the nodes that stop them, and applies
rewrites that help."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.limits import refuse_seconds
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck, TargetChecks, refusals, summary
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save, Verify
from onnxsmith.deployment.checking import compiled_code
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_application import applied
from onnxsmith.deployment.checking.profile_prediction import by_rules
from onnxsmith.deployment.checking.table_rewrites import unsearched, with_rewrite
from onnxsmith.deployment.checking.target_query import asked
from onnxsmith.deployment.checking.target_selection import ALL, chosen
from onnxsmith.graph.files.closed_axes import problem_of
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.reading import compiled_nodes
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import _call_limits
from onnxsmith.targets.judges.base import Target
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.verification import closed_axes, free_values
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.inputs.user_inputs import Inputs

SECONDS = 60.0
"""Limits the seconds in which all targets are asked. A choice."""


@identifies("model")
def check(
    model: Source,
    targets: Sequence[str] = (ALL,),
    output: str | Path | None = None,
    *,
    fix: bool = False,
    inputs: Inputs = (),
    verify: Verify = Verify(),
    save: Save = Save(),
    time_limit: float = SECONDS,
) -> Result:
    """Asks each target which stage it reaches with the model: parsed, built, ran, agreed with another runtime, or
    refused.

    `targets` are names of targets: software that is asked, and profiles, whose tables and rules predict the result
    (`profile:board.toml` is a profile of your own). `all` stands for all targets. First, symbolic dimensions stay
    symbolic. A target that refuses symbolic dimensions is asked again at the fixed sizes of `inputs`, or of a generated
    input. If a model is refused, the report names its refused nodes, and rewrites are tried on copies. With `fix` a
    rewritten model that the targets take is compared with the original, and written to `output`; `Result.model` is the
    rewritten model.

    Asking may take `time_limit` seconds, 0 for no limit; each target gets an equal share of what is left. What did not
    fit is named as not tried. The comparison of a rewritten model is not limited.

    The verdict is `different` if a target refuses the model or gives other outputs, `cannot-tell` if it is unknown
    whether its outputs agree, `failed` if a named target could not be asked.

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read, `target/unknown` for a name that no target has.
    """
    with Clock() as clock:
        names = chosen(targets)
        found = load(model)
        source = Path(model) if isinstance(model, str | Path) else None
        refuse_loss([output], [model, inputs], in_place=source)
        interface = signature(found)
        refuse_unknown(verify.sizes, interface)
        free_values.read(verify.free, [port.name for port in interface.outputs])
        subject = Subject(
            found,
            source,
            user_inputs.inputs(inputs, interface),
            user_inputs.sizes(verify.sizes),
            verify.seed,
            verify.free,
        )
        refuse_seconds(time_limit)
        limits = partial(_limited, time_limit)
        try:
            with limits():
                stuck = closed_axes.closed(found, subject.sizes, verify.seed) if not subject.given else ()
                checks, problems = _all(names, subject, named=ALL not in targets, search=not fix)  # `fix` searches
            parts: list[Part] = [TargetChecks(tuple(checks))]
            said = f"{source or 'the model'}: {', '.join(map(summary, checks))}"
            said += "".join(f"; {gap}" for gap in dict.fromkeys(gap for one in checks for gap in one.untried))
            made, path = found, None
            refused = {
                one.target: names[one.target]
                for one in checks
                if one.stage is Stage.REFUSED or one.changed or one.symbols
            }
            if fix and refused:
                with stage("fix"):
                    change = applied(refused, subject, output, verify, save)
                parts += change.parts
                said += f"; {change.headline}"
                if change.model is not None:
                    made, path = change.model, change.path
                    again = Subject(made, path, subject.given, subject.sizes, verify.seed, verify.free)
                    with limits():
                        checks, problems = _all(names, again, named=ALL not in targets)
                    parts.append(TargetChecks(tuple(checks)))
                    said += f": {', '.join(map(summary, checks))}"
        finally:
            subject.close()
    said += "".join(f"; the file names the size {one.symbol}, but the model accepts only one value" for one in stuck)
    compiled = compiled_code.found_in(subject, checks)
    said += compiled.headline
    report = Report(
        command="check",
        verdict=_verdict(checks, problems),
        headline=said,
        parts=(*parts, *compiled.parts, Timing(clock.passed())),
        problems=(
            *problems,
            *compiled.problems,
            *(problem_of(one, str(source or "MODEL")) for one in stuck),
            *refusals(
                [one for one in checks if one not in compiled.refused],
                str(source or "MODEL"),
                [port.name for port in interface.required()],
            ),
        ),
    )
    return Result(report, made, path)


def _limited(seconds: float) -> AbstractContextManager[None]:
    return _call_limits.within(seconds) if seconds else nullcontext()


_FOR_INPUT = 0.25
"""Sets the share of the time for the search for an input. A choice: the targets come after it."""
_LEAST = 1.0
"""Sets the seconds without which a target is not asked. A choice: its process needs as long to start."""


def _all(
    names: Mapping[str, Target | Profile], subject: Subject, *, named: bool, search: bool = True
) -> tuple[list[TargetCheck], list[Problem]]:
    checks, problems = [], []
    with stage("input"), _share(_FOR_INPUT):
        _ = subject.feeds
    with stage("shapes"):
        _ = subject.shaped
    waiting = sum(isinstance(one, Target) and one.missing() is None for one in names.values())
    for name, target in names.items():
        asks = isinstance(target, Target) and target.missing() is None
        if asks and _call_limits.remaining() < _LEAST:
            one, wrong = _not_tried(name, target), list[Problem]()
        else:
            with stage(name), _share(1 / waiting if asks else 1 / len(names)):
                one, wrong = _one(name, target, subject, named=named, search=search)
        waiting -= asks
        checks.append(one)
        problems += wrong
    return checks, problems


def _share(part: float) -> AbstractContextManager[None]:
    """Limits the time of a block to a part of the remaining time, if time is limited."""
    rest = _call_limits.remaining()
    return _call_limits.within(rest * part) if math.isfinite(rest) else nullcontext()


def _not_tried(name: str, target: Target | Profile) -> TargetCheck:
    assert isinstance(target, Target)
    why = "the time limit had passed: give a larger --time-limit, or check only this target with --target"
    return TargetCheck(name, target.title, target.version(), judge=True, stage=Stage.NOT_TRIED, why=why)


def _one(
    name: str, target: Target | Profile, subject: Subject, *, named: bool, search: bool
) -> tuple[TargetCheck, list[Problem]]:
    if isinstance(target, Profile):
        said = by_rules(name, target, subject)
        return (with_rewrite(said, target, subject) if named else unsearched(said)) if search else said, []
    missing = target.missing()
    if missing is not None:
        missing = _in_words(missing)
        why = f"{missing.what}: {missing.fix}"
        return TargetCheck(name, target.title, "", judge=True, stage=Stage.NOT_TRIED, why=why), [missing] * named
    if compiled_nodes.whose(subject.model, name):
        why = "it was compiled for this target, whose provider, SDK and device decide whether the code loads"
        return TargetCheck(name, target.title, target.version(), judge=True, stage=Stage.NOT_TRIED, why=why), []
    try:
        return asked(name, target, subject, search=search), []
    except OnnxsmithError as error:
        if _call_limits.is_over():
            return _not_tried(name, target), []
        found = _in_words(error.problem)
        one = TargetCheck(name, target.title, target.version(), judge=True, stage=Stage.NOT_TRIED, why=found.what)
        return one, [found]


def _in_words(found: Problem) -> Problem:
    """Returns the problem with a fix for `check`, whose option `--runtime` does not choose a target."""
    ways = [
        way for way in re.split(r"; (?:or )?|, or ", found.fix) if "--runtime" not in way and "--provider" not in way
    ]
    return replace(found, fix="; or ".join(ways) or "leave this target out, or check another target with --target")


def _verdict(checks: Sequence[TargetCheck], problems: Sequence[Problem]) -> Verdict:
    if problems or all(one.stage is Stage.NOT_TRIED and one.judge for one in checks):
        return Verdict.FAILED
    if any(one.stage is Stage.REFUSED or one.changed or (one.stage is Stage.RAN and one.nodes) for one in checks):
        return Verdict.DIFFERENT
    if any(one.why and (one.stage is not Stage.NOT_TRIED or not one.judge) for one in checks):
        return Verdict.CANNOT_TELL
    return Verdict.DONE
