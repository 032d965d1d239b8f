"""What a check is: it says of one model file and its inputs whether, and how, it fails.

Members of this room are found by their files. A helper module starts with an underscore.
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

from onnxsmith.model.graph import walk
from onnxsmith.model.graph.signature import Signature
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.reduction.bench import Bench
from onnxsmith.runtimes.base import Feeds


@dataclass(frozen=True)
class Attempt:
    """One file to judge, with the graph that it was written from."""

    path: Path
    model: ir.Model
    feeds: Feeds
    signature: Signature
    names: frozenset[str]
    """Names of the original and of this model, which messages repeat."""

    @property
    def folder(self) -> Path:
        """A folder of this attempt's own, for files beside the model."""
        return self.path.parent


@dataclass(frozen=True)
class Failure:
    """How a model failed. Two failures are the same when they share one of their `marks`, and neither is far smaller
    than the other (`size`, 0 where a failure has no size)."""

    what: str
    marks: frozenset[str]
    size: float = 0.0
    tolerance: tuple[float, float] = (0.0, 0.0)
    """What rounding explains, relative and absolute, where numbers were compared."""
    raises: bool = False
    """Whether it is an error, where numbers were to be compared."""
    doubtful: bool = False
    """Whether it may come from an input that nobody meant: a refusal while running."""

    def is_like(self, first: Failure) -> bool:
        """Whether this is `first` again, in a smaller model."""
        return bool(self.marks & first.marks) and self.size >= first.size * _SHARE


_SHARE = 0.01
"""What is left of a difference, at least: one that shrinks further is on its way to mere rounding."""


class End(StrEnum):
    """How an attempt ended."""

    FAILED = "failed"
    PASSED = "passed"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to; `failure` where it failed, `why` where it did not."""

    end: End
    failure: Failure | None = None
    why: str = ""


class Check(ABC):
    """A way to fail. A subclass is a frozen dataclass; the words after its name on the command line make one."""

    usage: ClassVar[str]
    """The words that it takes, as help shows them."""

    @classmethod
    @abstractmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """The check that the words describe. Raises ValueError with what is wrong with them."""

    @abstractmethod
    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        """Whether the file fails."""

    def runtimes(self) -> tuple[str, ...]:
        """The runtimes that it needs, as a person writes them."""
        return ()

    def patience(self) -> float | None:
        """Seconds after which a run is not waited for, where the check itself says so."""
        return None

    @abstractmethod
    def script(self, failure: Failure) -> tuple[str, ...]:
        """The lines of a Python program that shows the failure in the folder where `model.onnx` and `inputs.npz` lie.
        Its exit status is not 0 where the model still fails."""

    def files(self) -> tuple[Path, ...]:
        """Files that the program needs beside the model."""
        return ()

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        """Whether that program, which ended so, has shown the failure and nothing else."""
        return status != 0


def failed(failure: Failure) -> Outcome:
    """The outcome of a failure."""
    return Outcome(End.FAILED, failure)


def ended(error: OnnxsmithError) -> Outcome:
    """The outcome of an attempt that an error of a runtime ended, where that is not what is looked for."""
    ends = {"runtime/died": End.CRASHED, "runtime/timeout": End.TIMED_OUT}
    return Outcome(ends.get(error.problem.id, End.REFUSED), why=f"{error.problem.what} {error.problem.why}".strip())


_OTHERS = {"runtime/died", "runtime/timeout", "runtime/closed"}
_NOT_ASKED = {
    "runtime/dtype-unsupported",
    "runtime/provider-missing",
    "runtime/provider-fallback",
}
"""What we refuse before the runtime is asked, or what this machine lacks: that says nothing of the model."""


def is_refusal(found: Problem) -> bool:
    """Whether a problem is the runtime's own no to a model or its inputs."""
    return found.id not in _OTHERS | _NOT_ASKED and not found.id.startswith("run/")


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PORTS = re.compile(r"(?<=\) : )\(.*?\) -> \(.*?\)(?= , )")
"""What onnxruntime says of a node's inputs and outputs: their types, as far as the file declares them."""
_PATH = re.compile(r"(?<![\w<])(?:/[\w./~@+-]+|[A-Za-z]:\\[\w./\\~@+-]+)")
_NUMBER = re.compile(r"(?<![\w])[-+]?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def mark(found: Problem, names: frozenset[str]) -> str:
    """A problem without what changes from model to model: names, paths and numbers."""
    text = _PORTS.sub("", f"{found.what} {found.why}")
    text = _PATH.sub("/", text)
    text = re.sub(r"\b[Nn]ode ?\([^)]*\)", "Node ()", text)
    words = re.split(r"([A-Za-z0-9_./:\-]+)", text)
    text = "".join("#" if word in names or word.rstrip(":.") in names else word for word in words)
    text = re.sub(r"(?:,\s*)?#", "#", _NUMBER.sub("#", _QUOTED.sub("#", text)))
    return f"{found.id}: " + re.sub(r"(?:#[\s,x|]*)+", "#", text)


def names(model: ir.Model) -> frozenset[str]:
    """Every name that a message about the model could repeat. Names of operators are none: they say what failed."""
    found = {model.graph.name or ""}
    operators = set()
    for node in walk.all_nodes(model):
        operators |= {node.op_type, node.domain}
        found.add(node.name or "")
        found.update(value.name or "" for value in node.outputs)
    for graph in walk.graphs(model):
        found.update(value.name or "" for value in (*graph.inputs, *graph.initializers.values()))
    return frozenset(found - operators - {""})
