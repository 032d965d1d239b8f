"""What a strategy is: one way from a torch module to a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.problem import Problem
from onnxsmith.runtimes.torch_eager import TorchProgram

Example = Mapping[str, Any]
"""Example inputs by name, as arrays; each dynamic axis is at least 2 long."""


@dataclass(frozen=True)
class Captured:
    """What a strategy gives. Inputs and outputs of `model` are in the program's order; names are still the strategy's.

    `bounds` are the sizes that a symbol may take, (low, high), high None for no limit; `numbers` those that the trace
    compared it with, behind which the module may do something else. `fixed` are the user's lines
    that take something from the value of a tensor, which the graph has as it was for the example.
    """

    model: ir.Model
    how: str
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)


class Strategy(ABC):
    """One way to capture; stateless. The file's name is what `--strategy` takes (`torch_export.py`: `torch-export`)."""

    title: ClassVar[str]
    rank: ClassVar[int]
    """Strategies are tried in the order of this number, the smallest first."""
    follows_sizes: ClassVar[bool] = False
    """Whether a dynamic axis is traced with an open size. Otherwise the check at other sizes alone shows that the graph
    follows it, and one that was checked at a single size counts as fixed."""

    as_it_is: ClassVar[bool] = True
    """Whether it captures the module as its source stands."""

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether to try it after the strategies before it ended with these problems; a graph that differs is none."""
        return True

    @abstractmethod
    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        """The graph, at `opset` if the strategy can emit it and near it otherwise.

        Raises:
            OnnxsmithError: `export/frozen-axis` when a dynamic axis cannot stay so, `export/capture-failed` otherwise.
        """
