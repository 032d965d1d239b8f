"""The base class of probes, and the module under diagnosis that they examine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.capture import Finding
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.export_run import Job
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.graph import program_capture
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module.run_observation import Seen
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.strategy_choice import Try, tried
from onnxsmith.exporter.tracing import trace_diagnosis


@dataclass
class Case:
    """A module under diagnosis. If the module fails on its example, `built` is None and `refused` is the problem.

    Properties that need a trace are computed on first use.
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
        """The example, with dynamic axes of size 2 or more if the module accepts that."""
        assert self.built is not None
        try:
            return dict(program_capture.grown(self.built.program, self.built.example)[0])
        except OnnxsmithError:
            return dict(self.built.example)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the dynamic axes."""
        return self.built.program.signature.symbols() if self.built is not None else ()

    @cached_property
    def traced(self) -> trace_diagnosis.Traced:
        """The trace with every requested axis dynamic."""
        return self.trace(frozenset(self.symbols))

    def trace(self, dynamic: frozenset[str]) -> trace_diagnosis.Traced:
        """Traces the module with the axes of these names dynamic."""
        assert self.built is not None
        return trace_diagnosis.trace(self.built.program, self.example, dynamic)

    @cached_property
    def ways(self) -> list[Try]:
        """The results of the strategies that do not replace lines of forward, up to the first that agrees with the
        module."""
        return list(tried(self.job.maker, self.built, None, as_it_is=True)) if self.built is not None else []

    @property
    def good(self) -> bool:
        """Whether a strategy gives a graph that agrees with the module."""
        return any(way.agrees for way in self.ways)

    @property
    def dynamic(self) -> bool:
        """Whether a strategy gives a graph that agrees, with every dynamic axis verified at two sizes or more. Size 1
        does not count, because it broadcasts to any other size."""
        return any(
            way.agrees and way.made is not None and all(_moves(way.made.verification, name) for name in self.symbols)
            for way in self.ways
        )

    @property
    def moving(self) -> frozenset[str]:
        """The names of the axes that are dynamic in a graph that agrees, verified at two sizes or more."""
        graphs = [way.made for way in self.ways if way.agrees and way.made is not None]
        return frozenset(name for name in self.symbols if any(_moves(made.verification, name) for made in graphs))

    @property
    def stuck(self) -> tuple[str, ...]:
        """The names of axes that are dynamic in the graph but fixed in the module, which accepts one size only."""
        for way in self.ways:
            if way.agrees and way.strategy.follows_sizes and way.made is not None:
                return tuple(name for name in self.symbols if not _moves(way.made.verification, name))
        return ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """The gaps in the verification of the agreeing graph, in short clauses."""
        good = next((way.made for way in self.ways if way.agrees and way.made is not None), None)
        return good.verification.untried if good is not None else ()


def _moves(verification: Verification, symbol: str) -> bool:
    return len(set((verification.sizes or {}).get(symbol, ())) - {1}) > 1


class Probe(ABC):
    """Answers one question about a module. Stateless."""

    rank: ClassVar[int]
    """Probes run in ascending order of this number. `case.found` has the findings of earlier probes."""

    @abstractmethod
    def look(self, case: Case) -> Iterator[Finding]:
        """Yields the findings of this probe."""
