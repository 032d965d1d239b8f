"""Traces both sides of a module's branches on sizes, and joins them by Ifs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.strategies.base import Captured, Example, merged
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.size_branches import (
    Axis,
    SizeBranch,
    accepted,
    dynamic_axes,
    more_sides,
    moved,
    one_sided,
    other_sizes,
)
from onnxsmith.exporter.tracing.size_conditions import holds
from onnxsmith.graph.surgery.alternative_models import either
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.inputs.size_proposals import of_feed

_MOST_PATHS = 4
"""Limits the paths through the branches that are traced. A choice: each is one more copy of the nodes that differ."""
_MOST_SIZES = 16
"""Limits the sizes at which the module is run, to see whether it accepts them. A choice: more is slow for a large
module."""
_FACTORS = (2, 4, 8, 16, 32, 64)
"""Lists multiples of the example's sizes at which one of the paths has to be taken. A choice: a loop that halves a size
has another path at each multiple."""
_MOST_LARGER = 4
"""Limits the runs of the module at larger sizes at which no path is taken, to see whether it raises there. A choice."""


@dataclass
class SizeSides:
    """The traces of one module. The conditions under which a path is taken are the branches of its trace."""

    strategy: TorchExport
    program: TorchProgram
    example: Example
    opset: int | None
    paths: list[Captured] = field(default_factory=list)

    @cached_property
    def _now(self) -> Mapping[str, int]:
        """The example's sizes, by dimension."""
        return of_feed(self.program.signature, self.example)

    @cached_property
    def _axes(self) -> Mapping[Axis, str]:
        return dynamic_axes(self.program)

    def joined(self) -> Captured:
        """Returns the graph of all paths. The last path is taken where no condition of the others holds. A module
        without branches on sizes has one path.

        Raises:
            OnnxsmithError: `forward/size-compared` if no other path is found, or if the paths do not cover the sizes.
        """
        first = self.strategy.capture(self.program, self.example, self.opset)
        self.paths.append(first)
        said: list[str] = []
        while len(self.paths) < _MOST_PATHS and (sizes := self._add_path()):
            said.append(moved(sizes, self._now))
        if not first.branches:
            return first
        if len(self.paths) == 1:
            raise one_sided(first.branches)
        self._check_covered()
        whole = self.paths[-1].model
        lines: dict[str, None] = {}
        for index, path in reversed(list(enumerate(self.paths[:-1]))):
            deciding = _deciding(path, self.paths[index + 1 :])
            lines.update(dict.fromkeys(one.line for one in deciding))
            whole = either(_condition(deciding, self.program), path.model, whole)
        at = f"traced also at {'; at '.join(said)}, for the other side of the branch on sizes at {', '.join(lines)}"
        own = dict.fromkeys(note for path in self.paths for note in path.notes)
        notes = (f"{at}: the graph has an If", *own)
        numbers = merged(path.numbers for path in self.paths)
        registered = {one.target: one for path in self.paths for one in path.registered}
        return Captured(
            whole, first.how, _bounds(self.paths), notes, numbers=numbers, registered=tuple(registered.values())
        )

    def _add_path(self) -> Mapping[str, int]:
        """Adds another path, and returns its sizes; returns no sizes if the module takes no further path."""
        known = [branch for path in self.paths for branch in path.branches]
        proposed = [one for one in other_sizes(known, self._now, self._axes) if not self._is_taken(self.paths, one)]
        for sizes, example in accepted(self.program, self.example, proposed, _MOST_SIZES):
            try:
                path = self.strategy.capture(self.program, example, self.opset)
            except OnnxsmithError:  # a line of that side fixes an axis
                continue
            if self._is_taken([path], sizes):
                self.paths.append(path)
                return sizes
        return {}

    def _check_covered(self) -> None:
        """Refuses the paths if none is taken at larger sizes that the module accepts. A loop on sizes has a path for
        each number of iterations, and the last path has no condition in the graph."""
        dims = sorted(set(self._axes.values()))
        together = [{**self._now, **{dim: self._now[dim] * by for dim in dims}} for by in _FACTORS]
        alone = [{**self._now, dim: self._now[dim] * by} for dim in dims for by in _FACTORS] if len(dims) > 1 else []
        larger = [sizes for sizes in (*together, *alone) if not self._is_taken(self.paths, sizes)]
        for sizes, _ in accepted(self.program, self.example, larger, _MOST_LARGER):
            raise more_sides(self.paths[0].branches, sizes)

    def _is_taken(self, paths: Sequence[Captured], sizes: Mapping[str, int]) -> bool:
        """Whether inputs whose dimensions have these sizes take one of the paths; True if that cannot be told."""
        at = {axis: sizes[dim] for axis, dim in self._axes.items()}
        return any(all(one.holds(at) for one in path.branches) for path in paths)


def _deciding(path: Captured, others: Sequence[Captured]) -> list[SizeBranch]:
    """Returns the conditions of a path that not all later paths share: shared conditions hold on either side."""
    known = [{_normal(one) for one in other.branches} for other in others]
    return [one for one in path.branches if not all(_normal(one) in some for some in known)]


def _normal(branch: SizeBranch) -> tuple[str, Any]:
    """Returns a form of a condition that can be compared with another trace's, which may name its symbols
    differently."""
    named = {symbol: f"{port}:{axis}" for symbol, (port, axis) in branch.axes.items()}
    known = {symbol: type(symbol)(named[str(symbol)]) for symbol in branch.condition.free_symbols}
    return branch.line, branch.condition.xreplace(known)


def _condition(branches: Sequence[SizeBranch], program: TorchProgram) -> Any:
    """Writes the condition under which a path is taken, over the graph's inputs."""
    write = holds(branches)
    places = {port.name: index for index, port in enumerate(program.signature.inputs)}

    def written(tape: ir.tape.Tape, inputs: Mapping[str, ir.Value]) -> ir.Value:
        values = list(inputs.values())
        sizes: dict[Axis, ir.Value] = {}
        for port, axis in sorted({one for branch in branches for one in branch.axes.values()}):
            size = tape.op("Shape", [values[places[port]]], {"start": axis, "end": axis + 1})
            size.type, size.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
            sizes[port, axis] = size
        return write(tape, sizes)

    return written


def _bounds(captured: Sequence[Captured]) -> dict[str, tuple[int, int | None]]:
    """Returns the smallest and largest size of each symbol over all graphs."""
    found: dict[str, tuple[int, int | None]] = {}
    for one in captured:
        for symbol, (low, high) in one.bounds.items():
            lower, upper = found.get(symbol, (low, high))
            found[symbol] = min(low, lower), None if high is None or upper is None else max(high, upper)
    return found
