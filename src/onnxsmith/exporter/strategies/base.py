"""The base class of strategies: ways to capture a torch module as a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.translating.register import Registration
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.free_values import Freedom

Example = Mapping[str, Any]
"""Holds example inputs by name, as arrays; each dynamic axis is at least 2 long."""


@dataclass(frozen=True)
class Captured:
    """The result of a strategy. Inputs and outputs of `model` are in the program's order, with the strategy's names.

    `bounds` are the smallest and largest size of a symbol; None is no upper limit. `numbers` are the numbers that the
    trace compared a symbol with: beyond them the module may behave differently. `fixed` are the user's lines that read
    a tensor's value: the graph holds the example's value as a constant. `branches` are the module's branches on sizes;
    the graph has one side of each. `counted` are the lines (`file:line`) at which a number that follows from sizes
    became a constant. `registered` are the translations that the user registered, and that the capture used.
    """

    model: ir.Model
    how: str
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)
    branches: Sequence[SizeBranch] = ()
    counted: Sequence[str] = ()
    free: Sequence[Freedom] = ()
    """Holds the outputs that are free up to a sign by definition; each part's name is the output's number."""
    registered: Sequence[Registration] = ()


def merged(numbers: Iterable[Mapping[str, frozenset[int]]]) -> dict[str, frozenset[int]]:
    """Merges the numbers of several traces of one module, by symbol."""
    found: dict[str, frozenset[int]] = {}
    for some in numbers:
        found |= {symbol: found.get(symbol, frozenset()) | more for symbol, more in some.items()}
    return found


class Strategy(ABC):
    """One way to capture; stateless. Its name for `--strategy` is its class's name (`TorchExport`: `torch-export`), or
    its file's if it is alone in its file."""

    title: ClassVar[str]
    rank: ClassVar[int]
    """Strategies are tried in the order of this number, the smallest first."""
    tried_after: ClassVar[tuple[str, ...]] = ()
    """The strategy is only tried if the id of an earlier strategy's problem begins with one of these; if this is empty,
    always."""
    follows_sizes: ClassVar[bool] = False
    """Whether a dynamic axis is traced with a symbolic size. Otherwise only the verification at other sizes shows that
    an axis is dynamic, and an axis verified at one size counts as fixed."""

    takes_translations: ClassVar[bool] = True
    """Whether the strategy uses the translations that the user gave."""

    as_it_is: ClassVar[bool] = True
    """Whether the strategy captures the module without replacing lines of its source."""

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether to try this strategy, if earlier strategies ended with the problems `before`. A graph that differs
        from the module adds no problem to `before`."""
        return not self.tried_after or any(problem.id.startswith(self.tried_after) for problem in before)

    @abstractmethod
    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        """Captures the program, in `opset` if the strategy can emit it, otherwise in the nearest opset that it can.

        Raises:
            OnnxsmithError: `export/frozen-axis` if a dynamic axis became fixed; `export/capture-failed` and others.
        """
