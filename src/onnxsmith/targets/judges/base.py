"""Defines a target: software that may refuse a model. The software is asked here, without the target's device.

Targets are found by their files. The name of a helper module starts with an underscore.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.runtimes.base import Feeds


@dataclass(frozen=True)
class Refusal:
    """Holds a target's refusal of a model. `stage` is the last stage that the model passed: a model that is refused
    while it is built has been parsed. `nodes` are the nodes that the target itself named in structured form."""

    why: str
    stage: Stage = Stage.NOT_TRIED
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Holds the stage that a target reached with a model. `refusal` is None if the model passed all stages possible
    here. `notes` are remarks on an accepted model, such as a provider that left nodes to another provider. `symbols`
    says why the target takes the model only at the sizes of the given inputs. The target gets these sizes in a call, so
    the file need not be changed."""

    reached: Stage
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()
    symbols: Refusal | None = None


class Judge(ABC):
    """Asks a target. A judge is the value of a context manager; its child process ends when the context ends."""

    @abstractmethod
    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        """Parses and builds the model, and runs it on `feeds`, if the target runs models here.

        Raises:
            OnnxsmithError: `runtime/timeout` and `runtime/memory` if the target exceeds its limits. A crash is a
                refusal.
        """

    def refused(self, model: ir.Model) -> set[str] | None:
        """Returns the operators that the target refuses, and the limits that the file as a whole exceeds, if these can
        be found without asking about parts of the model. None means that the caller has to ask about parts."""
        return None

    def prepares(self, model: ir.Model) -> str:
        """Returns the changes that `ask` makes to the model before the target gets the model; "" for no changes."""
        return ""

    def unchanged(self, file: Path, feeds: Feeds | None = None) -> Answer | None:
        """Returns the target's answer about the unchanged file; None if `ask` changes nothing. Raises the errors of
        `ask`."""
        return None


class Target(ABC):
    """Takes or refuses models; has no state."""

    title: ClassVar[str]
    runs: ClassVar[bool] = True
    """Whether the target also runs models here."""
    reaches: ClassVar[str] = "running needs its device"
    """Says why a target that runs no models here stops at an earlier stage."""
    runtime: ClassVar[str | None] = None
    """Names the member of `onnxsmith.runtimes` that runs models as this target does."""

    @abstractmethod
    def missing(self) -> Problem | None:
        """Returns the problem that keeps this machine from asking the target, or None."""

    @abstractmethod
    def version(self) -> str:
        """Returns the version of the installed software."""

    @abstractmethod
    def judging(self) -> AbstractContextManager[Judge]:
        """Starts the software in a child process, which answers for many models."""


LIMITS = {"runtime/timeout", "runtime/memory", "target/no-sizes"}
"""Names the problems that say nothing about the model: limits set by onnxsmith, and inputs that it did not give."""


def refusal(error: OnnxsmithError, stage: Stage) -> Refusal:
    """Reads a refusal from a runtime's error. Raises errors that are about limits."""
    found = error.problem
    if found.id in LIMITS or found.id.startswith("run/"):  # a generated input does not fit its port
        raise error
    why = "; ".join(part for part in (found.what if found.id != "runtime/failed" else "", found.why) if part)
    return Refusal(why or found.what, stage)
