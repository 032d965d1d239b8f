"""Traces both sides of a module's branches on data, and joins them by Ifs."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.strategies.base import Captured, Example, merged
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.data_branches import Decisions
from onnxsmith.exporter.tracing.idle_conversions import is_raised
from onnxsmith.graph.surgery.alternative_models import either
from onnxsmith.runtimes.torch_eager import TorchProgram

_MOST_PATHS = 16
"""Limits the paths through the branches that are traced. A choice: each is one more trace, and one more copy of the
nodes that differ."""
_MOST_QUESTIONS = 10
"""Limits the branches on one path. A choice: a loop on data asks in each iteration."""


@dataclass
class DataSides:
    """The traces of one module. `lines` collects the branches with both sides in the graph, `raising` the branches with
    a side that raises."""

    strategy: TorchExport
    program: TorchProgram
    example: Example
    opset: int | None
    paths: list[Captured] = field(default_factory=list)
    lines: dict[str, None] = field(default_factory=dict)
    raising: dict[str, None] = field(default_factory=dict)

    def joined(self) -> Captured:
        """Returns the graph of all sides.

        Raises:
            OnnxsmithError: that of a trace; of the first one, if no path through the branches can be traced.
        """
        model = self._of([])
        first = self.paths[0]
        notes = [f"both sides of the branch on data at {line} were traced: the graph has an If" for line in self.lines]
        notes += [f"the side of the branch at {line} that raises is not in the graph" for line in self.raising]
        own = dict.fromkeys(note for path in self.paths for note in path.notes)
        numbers = merged(path.numbers for path in self.paths)
        branches = tuple({(one.line, one.condition): one for path in self.paths for one in path.branches}.values())
        registered = tuple({one.target: one for path in self.paths for one in path.registered}.values())
        return replace(
            first, model=model, notes=(*notes, *own), numbers=numbers, branches=branches, registered=registered
        )

    def _of(self, answers: Sequence[bool]) -> ir.Model:
        """Returns the graph of all paths on which the first questions have these answers. Its last outputs are the
        conditions of these questions."""
        decisions = Decisions(answers, len(answers) if len(self.paths) == _MOST_PATHS else _MOST_QUESTIONS)
        asked = len(answers)
        try:
            path = self.strategy.traced(self.program, self.example, self.opset, decisions)
            whole, asked = path.model, len(decisions.given)
            self.paths.append(path)
        except OnnxsmithError as error:
            last = len(decisions.given) - 1
            if not _raises(error) or last < asked:
                raise
            # The side of the last question with the answer True raises: only the other one has a result.
            self.raising[decisions.lines[last]] = None
            whole, asked = _without_last(self._of([*decisions.given[:last], not decisions.given[last]])), last
        for at in reversed(range(len(answers), asked)):
            whole = self._with_other_side(whole, decisions, at)
        return whole

    def _with_other_side(self, whole: ir.Model, decisions: Decisions, at: int) -> ir.Model:
        """Joins the graph, which has one answer to question `at`, with the graph of the other answer. The graph's last
        output is the condition; the result lacks that output."""
        line = decisions.lines[at]
        try:
            other = self._of([*decisions.given[:at], not decisions.given[at]])
        except OnnxsmithError as error:
            if not _raises(error):
                raise
            self.raising[line] = None
            return _without_last(whole)
        self.lines[line] = None
        _check_alike(whole, other, line)
        name = whole.graph.outputs[-1].name or ""
        return either(lambda _, values: values[name], _without_last(whole), _without_last(other))


def _check_alike(one: ir.Model, other: ir.Model, line: str) -> None:
    """Refuses sides whose results differ in number or dtype: an If cannot have both."""
    first, second = ([value.dtype for value in model.graph.outputs] for model in (one, other))
    if first == second:
        return
    said = [", ".join(str(dtype) for dtype in dtypes[:-1]) or "nothing" for dtypes in (first, second)]
    other_number = len(first) != len(second)
    raise problem(
        "forward/branch-on-data",
        f"the two sides of a branch on data return "
        f"{'different numbers of tensors' if other_number else 'different dtypes'}",
        where=line,
        why=f"one side returns {said[0]}, the other {said[1]}; but a graph always returns the same number of "
        "outputs with the same dtypes",
        fix="return as many tensors from both sides: a constant, such as x.new_zeros(()), where a side has none"
        if other_number
        else "return the same dtypes from both sides: .to(x.dtype) on the side that differs",
    )


def _without_last(model: ir.Model) -> ir.Model:
    """Returns the model without its last output."""
    model.graph.outputs.pop()
    return model


def _raises(error: OnnxsmithError) -> bool:
    """Whether a statement of the module raised the error that stopped the trace, and not torch's own code."""
    cause = error.__cause__
    if cause is None or not is_raised(cause.__traceback__):
        return False
    *_, (frame, _line) = traceback.walk_tb(cause.__traceback__)
    return is_models(frame.f_code.co_filename)
