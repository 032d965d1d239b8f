"""Defines a check: it decides whether, and how, a model file fails on its inputs.

Checks are found by walking this folder. A helper module starts with an underscore.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Feeds


@dataclass(frozen=True)
class Attempt:
    """One file to judge, and the graph written to it."""

    path: Path
    model: ir.Model
    feeds: Feeds
    signature: Signature
    names: frozenset[str]
    """Names in the original and in this model, which error messages may repeat."""


@dataclass(frozen=True)
class Failure:
    """A failure of a model. Two failures are the same if they share one of their `marks`, and if the second is not far
    smaller than the first. `size` is 0 for a failure without a size."""

    what: str
    marks: frozenset[str]
    size: float = 0.0
    tolerance: tuple[float, float] = (0.0, 0.0)
    """The relative and absolute difference that rounding explains, if numbers were compared."""
    raises: bool = False
    """Whether it is an error, in a check that compares numbers."""
    doubtful: bool = False
    """Whether a meaningless input may be the cause: the model was refused while it ran."""

    def is_like(self, first: Failure) -> bool:
        """Whether this is the same failure as `first`, in a smaller model."""
        return bool(self.marks & first.marks) and self.size >= first.size * _SHARE


_SHARE = 0.01
"""Least share of the first difference. A choice: a smaller one may be rounding."""


class End(StrEnum):
    """The end of an attempt."""

    FAILED = "failed"
    PASSED = "passed"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt: `failure` if it failed, else `why`."""

    end: End
    failure: Failure | None = None
    why: str = ""


class Check(ABC):
    """A way to fail. A subclass is a frozen dataclass, made from the words after its name on the command line."""

    usage: ClassVar[str]
    """The words that it takes, for the help text."""

    @classmethod
    @abstractmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Returns the check that the words describe. Raises ValueError with the reason if they are wrong."""

    @abstractmethod
    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        """Judges whether the file fails."""

    def runtimes(self) -> tuple[str, ...]:
        """Returns the runtimes that the check needs, as a user writes them."""
        return ()

    def patience(self) -> float | None:
        """Returns the seconds after which a run is stopped, if the check itself has a limit."""
        return None

    @abstractmethod
    def script(self, failure: Failure) -> tuple[str, ...]:
        """Returns the lines of a Python program that shows the failure in the folder with `model.onnx` and
        `inputs.npz`. Its exit status is not 0 if the model still fails."""

    def files(self) -> tuple[Path, ...]:
        """Returns files that the program needs beside the model."""
        return ()

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        """Whether that program, with this exit status and output, showed the failure and nothing else."""
        return status != 0


def failed(failure: Failure) -> Outcome:
    """Returns the outcome of a failure."""
    return Outcome(End.FAILED, failure)


def ended(error: OnnxsmithError) -> Outcome:
    """Returns the outcome of an attempt that ended with an error other than the wanted one."""
    ends = {"runtime/died": End.CRASHED, "runtime/timeout": End.TIMED_OUT}
    own = "onnxsmith did not ask the runtime: " if error.problem.id == "runtime/dtype-unsupported" else ""
    why = f"{own}{error.problem.what} {error.problem.why}".strip()
    return Outcome(ends.get(error.problem.id, End.REFUSED), why=why)


_OTHERS = {"runtime/died", "runtime/timeout", "runtime/closed"}
_NOT_ASKED = {
    "runtime/dtype-unsupported",
    "runtime/provider-missing",
    "runtime/provider-fallback",
}
"""Refusals by onnxsmith before the runtime is called, and gaps of this machine: they say nothing about the model."""


def is_refusal(found: Problem) -> bool:
    """Whether the problem is the runtime's own refusal of the model or its inputs."""
    return found.id not in _OTHERS | _NOT_ASKED and not found.id.startswith("run/")


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PORTS = re.compile(r"(?<=\) : )\(.*?\) -> \(.*?\)(?= , )")
"""The part of onnxruntime's message with the declared types of a node's inputs and outputs."""
_PATH = re.compile(r"(?<![\w<])(?:/[\w./~@+-]+|[A-Za-z]:\\[\w./\\~@+-]+)")
_NUMBER = re.compile(r"(?<![\w])[-+]?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def mark(found: Problem, names: frozenset[str]) -> str:
    """Returns the text of a problem without names, paths and numbers, which change from model to model."""
    text = _PORTS.sub("", f"{found.what} {found.why}")
    text = _PATH.sub("/", text)
    text = re.sub(r"\b[Nn]ode ?\([^)]*\)", "Node ()", text)
    words = re.split(r"([A-Za-z0-9_./:\-]+)", text)
    text = "".join("#" if word in names or word.rstrip(":.") in names else word for word in words)
    text = re.sub(r"(?:,\s*)?#", "#", _NUMBER.sub("#", _QUOTED.sub("#", text)))
    return f"{found.id}: " + re.sub(r"(?:#[\s,x|]*)+", "#", text)


def names(model: ir.Model) -> frozenset[str]:
    """Returns every name that a message about the model may repeat. Operators are excluded, as they are part of the
    failure."""
    found = {model.graph.name or ""}
    operators = set()
    for node in walk.all_nodes(model):
        operators |= {node.op_type, node.domain}
        found.add(node.name or "")
        found.update(value.name or "" for value in node.outputs)
    for graph in walk.graphs(model):
        found.update(value.name or "" for value in (*graph.inputs, *graph.initializers.values()))
    return frozenset(found - operators - {""})
