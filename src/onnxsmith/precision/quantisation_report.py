"""Reports the result of a quantisation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.quantisation import CurvePoint, Quantisation
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import several, told_apart
from onnxsmith.precision.final import Final
from onnxsmith.precision.method_trial import Tried
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.scoring import Scored


@dataclass(frozen=True)
class Outcome:
    """The result of a method. `final` is None if no file is to be written. `measured` is the measured file, even if it
    is refused."""

    tried: Tried
    final: Final | None
    refused: tuple[Problem, ...] = ()
    measured: Final | None = None


def said(one: Outcome, before: float) -> str:
    """Summarises a method's result in one line. `before` is the score of the given model."""
    if one.final is None:
        return f"{one.tried.name}: {'; '.join(found.what for found in one.refused)}"
    return f"{one.tried.name}: {one.final.said(before)}"


def not_met(tried: Tried, given: Given, before: Scored, most: int) -> Problem:
    """Makes the problem for a method that met the budget with no keep-list. At most `most` lists were allowed."""
    score = given.scoring.score
    known = [one for one in tried.curve if not math.isnan(one.score)]
    order = sorted(known, key=lambda one: one.score, reverse=score.better == "higher")
    had, bound, *best = told_apart(
        before.value, given.budget.bound(before.value, score.better), *(one.score for one in order[:1])
    )
    nearest = f"; the best of them has the score {best[0]} and {_keeps(order[0])}" if order else ""
    is_spent = tried.evaluations >= most
    rest = "others were not tried" if is_spent else "and the search has no other list to try"
    return problem(
        "quantize/budget-not-met",
        f"none of the {tried.name} models that were tried meets the budget",
        where=f"{score.title} {had}; the budget allows {bound} at worst",
        why=f"{several(tried.evaluations, 'keep-list')} of at most {most} were evaluated, {rest}{nearest}",
        fix=", or ".join(
            [
                *([f"give more evaluations: --evaluations {4 * most}"] if is_spent else []),
                given.budget.wider(before.value, order[0].score, score.better) if order else "give a wider --budget",
                "try another --to",
            ]
        ),
    ).problem


def _keeps(point: CurvePoint) -> str:
    """Says which layers are not as narrow as the method makes them, in words that follow "it"."""
    counts = {
        "as given": point.kept,
        "in 8 bits": point.eight,
        "with the weights alone narrow": point.weights,
    }
    told = [f"{several(count, 'layer')} {how}" for how, count in counts.items() if count]
    return f"has {', '.join(told)}" if told else "keeps no layer"


def part(best: Outcome, given: Given, before: Scored, given_bytes: int | None, notes: tuple[str, ...]) -> Quantisation:
    """Makes the report's part. `given_bytes` is the size of the given file, None for a model in memory."""
    tried, done, score = best.tried, best.measured, given.scoring.score
    return Quantisation(
        to=tried.name,
        method=f"{tried.method.title}{f' ({tried.scheme})' if tried.scheme else ''}",
        layers=tried.layers,
        left=tried.left,
        score=score.title,
        better=score.better,
        before=before.value,
        after=None if done is None else done.scored.value,
        bound=given.budget.bound(before.value, score.better),
        budget=f"budget {given.budget}",
        samples=before.samples,
        calibrated=tried.calibrated,
        labelled=given.scoring.has_labels,
        measured=given.is_accuracy,
        broken=0 if done is None else done.scored.broken,
        bytes_before=done.nbytes_before if done is not None else given_bytes or tried.nbytes,
        bytes_after=None if done is None else done.nbytes,
        evaluations=tried.evaluations,
        curve=tried.curve,
        times_ratio=None if done is None else done.ratio,
        times="" if done is None else done.times,
        also={} if done is None else dict(done.also),
        notes=(*tried.notes, *notes),
        declared=tried.declared,
    )


def report(
    where: str,
    best: Outcome,
    part: Quantisation,
    rest: tuple[Part, ...],
    doubts: Iterable[Problem],
    model: ir.Model | None,
    *,
    unsure: str = "",
) -> Result:
    """Makes the result: the report, the model if there is one, and its path. `unsure` says why the score proves
    nothing."""
    told = part.summary() if best.final is not None else f"nothing was made: {best.refused[0].what}"
    told += f"; {unsure}" if unsure else ""
    found = Report(
        "quantize",
        Verdict.DONE if best.final is not None else Verdict.FAILED,
        (part, *rest),
        problems=(*doubts, *best.refused),
        headline=f"{where}: {told}",
    )
    names = [name for one in rest if isinstance(one, Written) for name in one.files]
    return Result(found, model, next((Path(name) for name in names if name.endswith(".onnx")), None))
