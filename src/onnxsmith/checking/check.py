"""`check`: asks targets whether they take a model, and names the nodes that stop them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxsmith import rooms
from onnxsmith.checking.asking import asked
from onnxsmith.checking.subject import Subject
from onnxsmith.clock import Clock, stage
from onnxsmith.feeds import given
from onnxsmith.feeds.given import Inputs
from onnxsmith.model.files.load import Source, load
from onnxsmith.model.graph.signature import signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.base import Report
from onnxsmith.report.parts.target_checks import Stage, TargetCheck, TargetChecks, summary
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.verdict import Verdict
from onnxsmith.result import Result
from onnxsmith.targets.base import Target

ALL = "all"


def check(
    model: Source,
    targets: Sequence[str] = (ALL,),
    *,
    inputs: Inputs = (),
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Result:
    """Asks each target how far it comes with the model: parsed, built, ran, agreed with another runtime, or refused.

    `targets` are names of targets; `all` are those that are installed. Symbolic dimensions stay symbolic first; a
    target that refuses them is asked again at fixed sizes: those of `inputs`, else `sizes`, else 1. Of a refused model
    the nodes are named. The verdict is `different` if a target refuses the model or gives other numbers, `cannot-tell`
    if it is not known whether its numbers agree.

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read, `target/unknown` for a name that no target has.
    """
    with Clock() as clock:
        names = chosen(targets)
        found = load(model)
        source = Path(model) if isinstance(model, str | Path) else None
        subject = Subject(found, source, given.inputs(inputs, signature(found)), dict(sizes or {}), seed)
        checks, problems = [], []
        try:
            for name, target in names.items():
                with stage(name):
                    one, wrong = _one(name, target, subject, named=ALL not in targets)
                checks.append(one)
                problems += wrong
        finally:
            subject.close()
    report = Report(
        command="check",
        verdict=_verdict(checks, problems),
        headline=f"{source or 'the model'}: {', '.join(map(summary, checks))}",
        parts=(TargetChecks(tuple(checks)), Timing(dict(clock.seconds))),
        problems=tuple(problems),
    )
    return Result(report, found)


def chosen(names: Sequence[str]) -> dict[str, Target]:
    """The targets of these names; the installed ones and those that are not for `all`.

    Raises:
        OnnxsmithError: `target/unknown`.
    """
    members = rooms.members("onnxsmith.targets", Target)
    if ALL in names:
        return members
    for name in names:
        if name not in members:
            near = difflib.get_close_matches(name, members, 1)
            raise problem(
                "target/unknown",
                f"there is no target {name!r}",
                fix=f"write --target {(near or list(members))[0]}; there are {', '.join(members)}, {ALL}",
            )
    return {name: members[name] for name in dict.fromkeys(names)}


def _one(name: str, target: Target, subject: Subject, *, named: bool) -> tuple[TargetCheck, list[Problem]]:
    missing = target.missing()
    if missing is not None:
        why = f"{missing.what}: {missing.fix}"
        return TargetCheck(name, target.title, "", judge=True, stage=Stage.NOT_TRIED, why=why), [missing] * named
    try:
        return asked(name, target, subject), []
    except OnnxsmithError as error:
        found = error.problem
        one = TargetCheck(name, target.title, target.version(), judge=True, stage=Stage.NOT_TRIED, why=found.what)
        return one, [found]


def _verdict(checks: Sequence[TargetCheck], problems: Sequence[Problem]) -> Verdict:
    if problems or all(one.stage is Stage.NOT_TRIED for one in checks):
        return Verdict.FAILED
    if any(one.stage is Stage.REFUSED or (one.stage is Stage.RAN and one.nodes) for one in checks):
        return Verdict.DIFFERENT
    if any(one.why and one.stage is not Stage.NOT_TRIED for one in checks):
        return Verdict.CANNOT_TELL
    return Verdict.DONE
