"""Steps of a cell: verbs of the command line, and how each gets the model and hands it on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.base.words import in_place_of


class Role(StrEnum):
    """What a verb does with the model of its cell."""

    MAKES = "makes"
    """Makes an ONNX file from a module or a folder: the first step. It is left out for a model that is a file."""
    REWRITES = "rewrites"
    """Reads the model and writes the next one with `-o`."""
    READS = "reads"
    """Reads the model; the next step gets the same one."""
    COMPARES = "compares"
    """Reads the first ONNX file of the cell and the present one."""


VERBS: Mapping[str, Role] = {
    "export": Role.MAKES,
    **dict.fromkeys(
        (
            "cast", "edit", "expose", "extract", "inline", "layout", "opset", "outline", "prune", "quantize", "rename",
            "replace", "set-dim", "simplify", "strip",
        ),
        Role.REWRITES,
    ),
    **dict.fromkeys(("baseline check", "bench", "check", "dump", "inspect", "run"), Role.READS),
    "compare": Role.COMPARES,
    "diff": Role.COMPARES,
}  # fmt: skip
"""The verbs that a plan may use. `diagnose`, `reduce` and `bisect` answer questions about one model, not about many."""
ALIASES = {"baseline": "baseline check"}
"""Short names of verbs in a plan."""


@dataclass(frozen=True)
class Step:
    """A verb with its options as words."""

    verb: str
    options: tuple[str, ...] = ()

    @property
    def role(self) -> Role:
        """Returns what the verb does with the model."""
        return VERBS[self.verb]


@dataclass(frozen=True)
class Mistake:
    """Why a verb does not take its options: what is wrong, the reason and the fix. `is_missing`: nothing is wrong but
    that an argument is missing, which another table of the plan may have."""

    what: str
    why: str
    fix: str
    is_missing: bool = False


Accepts = Callable[[str, Sequence[str]], Mistake | None]
"""A function of a verb and the words behind it. It returns why the command line refuses them; None if it takes them."""


def verb(name: str, where: str) -> str:
    """Returns the verb that a plan names.

    Raises:
        OnnxsmithError: `fleet/plan` for a name that is no verb, or a verb that cannot be a step.
    """
    full = ALIASES.get(name, name)
    if full in VERBS:
        return full
    raise problem(
        "fleet/plan",
        f"{name!r} cannot be a step of a plan",
        where=where,
        why="a step is a verb that reads the model of the cell",
        fix=in_place_of(name, sorted({*VERBS, *ALIASES} - {"baseline check"})),
    )


def words_of(step: Step, first: str, present: str, output: str) -> list[str]:
    """Returns the words behind the verb of a step: the models that it reads, its options, and the file that it writes.
    `first` is the first ONNX file of the cell, `present` the present model."""
    if step.role is Role.COMPARES:
        return [first, present, *step.options]
    if step.role is Role.READS:
        return [present, *step.options]
    return [present, *step.options, "-o", output]


def words(value: Any) -> tuple[str, ...] | None:
    """Returns options as words: from a text as it is typed in a shell, or from a list of texts. Returns None for any
    other value, and for a text with an open quotation mark."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            return None
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    return None


def needed(steps: Sequence[Step], *, is_file: bool) -> tuple[Step, ...]:
    """Returns the steps that a model needs: a model that is a file is not exported."""
    return tuple(step for step in steps if not (is_file and step.role is Role.MAKES))
