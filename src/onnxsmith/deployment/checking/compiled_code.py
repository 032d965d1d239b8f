"""Says what `check` found of a model that an execution provider has compiled: one problem for all targets that cannot
run its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts import compiled_nodes as parts
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck
from onnxsmith.base.words import first_few
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.graph.reading import compiled_nodes

_SHOWN = 3
"""Limits the targets that a problem names. A choice."""


@dataclass(frozen=True)
class Compiled:
    """Holds what the report says. `refused` are the targets that refuse nothing but compiled code: advice on operators
    does not help there."""

    parts: tuple[Part, ...] = ()
    headline: str = ""
    problems: tuple[Problem, ...] = ()
    refused: tuple[TargetCheck, ...] = ()


def found_in(subject: Subject, checks: Sequence[TargetCheck]) -> Compiled:
    """Returns what to say of the compiled nodes of a model; an empty result for a model without any."""
    part = compiled_nodes.of_model(subject.model, subject.source)
    if part is None:
        return Compiled()
    refused = tuple(one for one in checks if _refuses_only_code(one))
    where = str(subject.source or "the model")
    why = f"these targets cannot run it: {first_few([one.target for one in refused], _SHOWN)}" if refused else ""
    problems = (parts.problem_of(part, where, why),) if refused or part.lost else ()
    return Compiled((part,), f"; it holds code that {part.providers} compiled", problems, refused)


def _refuses_only_code(check: TargetCheck) -> bool:
    refused = [one for one in check.nodes if one.stage is Stage.REFUSED]
    return bool(refused) and all(one.op == compiled_nodes.NAME for one in refused)
