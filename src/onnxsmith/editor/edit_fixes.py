"""Rewords the fixes of problems for edits, with steps and their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from onnxsmith.base.problem import Problem
from onnxsmith.editor.steps.base import Step


def in_words_of_steps(found: Problem) -> str:
    """Returns the fix of a problem. For a new operator the fix names `build`'s methods, which an edit does not have."""
    if "g." not in found.fix or not found.id.startswith("build/"):
        return found.fix
    if found.id == "build/constant":
        return "give a value of that dtype, for example an array"
    return (
        'give tensors of one dtype; a Cast is a step, too: do = "insert", op = "Cast", attributes = { to = "float32" }'
    )


def meant(found: Problem, steps: Iterable[Step]) -> Problem:
    """Returns the problem. If an output differs, its fix tells how a step declares that it changes numbers."""
    if found.id != "verify/different":
        return found
    fixes = []
    if any(getattr(step, "changes", None) is False for step in steps):
        fixes.append(
            "say that the replacement changes numbers: `--changes`, in a patch `changes = true`, in Python "
            "`changes=True`"
        )
    if any(getattr(step, "same", None) is True for step in steps):
        fixes.append("leave out `same` where a step is meant to change numbers")
    if not fixes:
        return found
    return dataclasses.replace(found, fix="correct the step, or " + ", or ".join(fixes))
