"""Defines a target: software that may refuse a model, asked here without the device that it is for.

Targets are found by their files. A helper module starts with an underscore.
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
    """A target's refusal of a model. `stage` is how far it came before: a model that was refused when it was built has
    been parsed. `nodes` are the names of nodes that the target itself named, in structured form."""

    why: str
    stage: Stage = Stage.NOT_TRIED
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """How far a target came with a model. `refusal` is None if it went as far as it can here. `notes` are remarks on an
    accepted model, such as a provider that left nodes to another. `symbols` says why the target takes the model only at
    the sizes of the given inputs, which it is told in a call: the file need not be changed for them."""

    reached: Stage
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()
    symbols: Refusal | None = None


class Judge(ABC):
    """A target that is being asked. A context manager's value: the child process ends with the context."""

    @abstractmethod
    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        """Parses and builds the model, and runs it on `feeds`, if the target runs models here.

        Raises:
            OnnxsmithError: `runtime/timeout` and `runtime/memory` if the target exceeds its limits. A crash is a
                refusal.
        """

    def refused(self, model: ir.Model) -> set[str] | None:
        """What is refused of a model, if that need not be found by asking about parts: operators, and limits that the
        file as a whole exceeds. None: ask about parts."""
        return None

    def prepares(self, model: ir.Model) -> str:
        """What `ask` changes in the model before the target sees it; "" if nothing."""
        return ""

    def unchanged(self, file: Path, feeds: Feeds | None = None) -> Answer | None:
        """What the target says of the file itself; None if `ask` changes nothing. Raises as `ask`."""
        return None


class Target(ABC):
    """Software that takes or refuses a model; stateless."""

    title: ClassVar[str]
    runs: ClassVar[bool] = True
    """Whether it also runs models here."""
    runtime: ClassVar[str | None] = None
    """The name in `onnxsmith.runtimes` that runs models as this target does."""

    @abstractmethod
    def missing(self) -> Problem | None:
        """Why it cannot be asked on this machine, or None."""

    @abstractmethod
    def version(self) -> str:
        """The version of the installed software."""

    @abstractmethod
    def judging(self) -> AbstractContextManager[Judge]:
        """Starts the software in a child process; many models can be asked of it."""


LIMITS = {"runtime/timeout", "runtime/memory", "target/no-sizes"}
"""Problems that say nothing about the model: limits of ours, and inputs that we did not give."""


def refusal(error: OnnxsmithError, stage: Stage) -> Refusal:
    """Reads a refusal from a runtime's error. Raises errors that are about limits."""
    found = error.problem
    if found.id in LIMITS or found.id.startswith("run/"):  # an input of ours that does not fit its port
        raise error
    why = " ".join(part for part in (found.what if found.id != "runtime/failed" else "", found.why) if part)
    return Refusal(why or found.what, stage)
