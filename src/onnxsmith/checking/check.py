"""`check`: asks targets whether they take a model, names the nodes that stop them, and applies rewrites that help."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from onnxsmith import rooms
from onnxsmith.checking.applying import applied
from onnxsmith.checking.asking import asked
from onnxsmith.checking.subject import Subject
from onnxsmith.clock import Clock, stage
from onnxsmith.feeds import given
from onnxsmith.feeds.given import Inputs
from onnxsmith.model.files.load import Source, load
from onnxsmith.model.files.outputs import refuse_loss
from onnxsmith.model.graph.signature import signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.base import Part, Report
from onnxsmith.report.parts.target_checks import Stage, TargetCheck, TargetChecks, summary
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.verdict import Verdict
from onnxsmith.result import Result
from onnxsmith.settings import Save, Verify
from onnxsmith.targets.base import Target

ALL = "all"


def check(
    model: Source,
    targets: Sequence[str] = (ALL,),
    output: str | Path | None = None,
    *,
    fix: bool = False,
    inputs: Inputs = (),
    verify: Verify = Verify(),
    save: Save = Save(),
) -> Result:
    """Asks each target how far it comes with the model: parsed, built, ran, agreed with another runtime, or refused.

    `targets` are names of targets; `all` are those that are installed. Symbolic dimensions stay symbolic first; a
    target that refuses them is asked again at fixed sizes, those of `inputs` or of a generated input. Of a refused
    model the nodes are named, and rewrites are tried on copies of it. With `fix` a rewritten model that the targets
    take is compared with the original, and written to `output`; `Result.model` is that model.

    The verdict is `different` if a target refuses the model or gives other numbers, `cannot-tell` if it is not known
    whether its numbers agree, `failed` if a target that was named could not be asked.

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read, `target/unknown` for a name that no target has.
    """
    with Clock() as clock:
        names = chosen(targets)
        found = load(model)
        refuse_loss([output], [model, inputs])
        source = Path(model) if isinstance(model, str | Path) else None
        subject = Subject(found, source, given.inputs(inputs, signature(found)), given.sizes(verify.sizes), verify.seed)
        try:
            checks, problems = _all(names, subject, named=ALL not in targets)
            parts: list[Part] = [TargetChecks(tuple(checks))]
            said = f"{source or 'the model'}: {', '.join(map(summary, checks))}"
            made, path = found, None
            refused = {one.target: names[one.target] for one in checks if one.stage is Stage.REFUSED}
            if fix and refused:
                with stage("fix"):
                    change = applied(refused, subject, output, verify, save)
                parts += change.parts
                said += f"; {change.headline}"
                if change.model is not None:
                    made, path = change.model, change.path
                    checks, problems = _all(names, Subject(made, path, subject.given, subject.sizes, verify.seed),
                                            named=ALL not in targets)  # fmt: skip
                    parts.append(TargetChecks(tuple(checks)))
                    said += f": {', '.join(map(summary, checks))}"
        finally:
            subject.close()
    report = Report(
        command="check",
        verdict=_verdict(checks, problems),
        headline=said,
        parts=(*parts, Timing(dict(clock.seconds))),
        problems=tuple(problems),
    )
    return Result(report, made, path)


def chosen(names: Sequence[str]) -> dict[str, Target]:
    """The targets of these names; all targets for `all`.

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


def _all(names: dict[str, Target], subject: Subject, *, named: bool) -> tuple[list[TargetCheck], list[Problem]]:
    checks, problems = [], []
    for name, target in names.items():
        with stage(name):
            one, wrong = _one(name, target, subject, named=named)
        checks.append(one)
        problems += wrong
    return checks, problems


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
