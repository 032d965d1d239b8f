"""Finds a rewrite after which a target's table takes a model that it refuses."""

from __future__ import annotations

from dataclasses import replace

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck
from onnxsmith.base.words import pasted
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_search import UNKNOWN, fixed, in_words
from onnxsmith.deployment.checking.profile_prediction import TableJudge
from onnxsmith.graph.files.specification_check import operands_clash
from onnxsmith.runtimes import _call_limits
from onnxsmith.targets.profiles.profile_format import Profile


def with_rewrite(check: TargetCheck, profile: Profile, subject: Subject) -> TargetCheck:
    """Returns the check of a table with the rewrite that helps, if the table refuses the model and a rewrite is known.
    A model that no runtime runs, because its operands clash, gets none: another form of it would be no help."""
    if check.stage is not Stage.REFUSED or check.rewrite:
        return check
    if subject.feeds is None and operands_clash(subject.model):
        return check
    forms = [subject] if subject.static is None else [subject, subject.static]
    try:
        with TableJudge.judging(profile) as judge:
            tries = ((fixed(judge, form, {UNKNOWN}), form) for form in forms)
            helps = next(((found, form) for found, form in tries if found is not None), None)
    except OnnxsmithError:
        if not _call_limits.is_over():
            raise
        late = "some rewrites that may help were not tried, because the time limit had passed"
        return replace(check, notes=(*check.notes, late))
    return check if helps is None else replace(check, rewrite=in_words(*helps))


def unsearched(check: TargetCheck) -> TargetCheck:
    """Returns the check of a table among all targets. There is no time to search rewrites for each of them, so a
    refusal names the command that searches."""
    if check.stage is not Stage.REFUSED or check.rewrite:
        return check
    return replace(check, help=f"`onnxsmith check MODEL --target {pasted(check.target)}` looks for a rewrite")
