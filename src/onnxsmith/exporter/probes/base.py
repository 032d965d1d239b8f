"""What a probe is: one question about a module, asked of what is there or of a trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from onnxsmith.exporter.export_run import Job, Try
from onnxsmith.exporter.graph import capture
from onnxsmith.exporter.inputs.program import Built
from onnxsmith.exporter.module.linting import Suspicion
from onnxsmith.exporter.module.observing import Seen
from onnxsmith.exporter.tracing import probing
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.report.parts.diagnosis import Finding
from onnxsmith.report.parts.verification import Verification
from onnxsmith.sources.factory import TorchModel


@dataclass
class Case:
    """A module under diagnosis. `built` is None where the module does not take its example, and then `refused` says so.

    What costs a trace is made when it is first asked for.
    """

    model: TorchModel
    job: Job
    seen: Seen
    suspicions: list[Suspicion]
    built: Built | None
    refused: Problem | None
    found: list[Finding] = field(default_factory=list)

    @cached_property
    def example(self) -> dict[str, object]:
        """The example, its dynamic axes at least 2 long where the module takes that."""
        assert self.built is not None
        try:
            return dict(capture.grown(self.built.program, self.built.example)[0])
        except OnnxsmithError:
            return dict(self.built.example)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the dynamic axes."""
        return self.built.program.signature.symbols() if self.built is not None else ()

    @cached_property
    def traced(self) -> probing.Traced:
        """A trace with every asked axis dynamic."""
        return self.trace(frozenset(self.symbols))

    def trace(self, dynamic: frozenset[str]) -> probing.Traced:
        """A trace with the axes of these names dynamic."""
        assert self.built is not None
        return probing.trace(self.built.program, self.example, dynamic)

    @cached_property
    def ways(self) -> list[Try]:
        """What each strategy made of the module as it is, until one is good."""
        return list(self.job.tries(self.built, None, as_it_is=True)) if self.built is not None else []

    @property
    def good(self) -> bool:
        """Whether some way leads to a graph that agrees with the module."""
        return any(way.agrees for way in self.ways)

    @property
    def open(self) -> bool:
        """Whether some way leads to such a graph, and every dynamic axis was tried at two sizes and more with it, 1 not
        counted: an axis of 1 fits any other by broadcasting."""
        return any(
            way.agrees and way.made is not None and all(_moves(way.made.verification, name) for name in self.symbols)
            for way in self.ways
        )

    @property
    def stuck(self) -> tuple[str, ...]:
        """The names of dynamic axes that a graph keeps open and the module does not: it takes one size of them only."""
        for way in self.ways:
            if way.agrees and way.strategy.follows_sizes and way.made is not None:
                return tuple(name for name in self.symbols if not _moves(way.made.verification, name))
        return ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """What was not tried of the graph that agrees, or is not taken, in short clauses."""
        good = next((way.made for way in self.ways if way.agrees and way.made is not None), None)
        return good.verification.untried if good is not None else ()


def _moves(verification: Verification, symbol: str) -> bool:
    return len(set((verification.sizes or {}).get(symbol, ())) - {1}) > 1


class Probe(ABC):
    """One question; stateless."""

    rank: ClassVar[int]
    """Probes are asked in the order of this number; `case.found` has what those before found."""

    @abstractmethod
    def look(self, case: Case) -> Iterator[Finding]:
        """What it finds."""
