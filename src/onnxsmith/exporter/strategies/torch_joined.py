"""torch.export of both sides of the module's branches on sizes, joined by an If."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
import torch

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.strategies.base import Captured, Example, numbers_of
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.size_branches import (
    Axis,
    SizeBranch,
    dynamic_axes,
    more_sides,
    one_sided,
    other_sizes,
    within,
)
from onnxsmith.exporter.tracing.size_conditions import holds
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram

_MOST_PATHS = 4
"""Paths through the branches that are traced. A choice: each is one more copy of the nodes that differ."""
_MOST_SIZES = 16
"""Sizes at which the module is run, to see whether it accepts them. A choice: more is slow for a large module."""


_FACTORS = (2, 4, 8, 16, 32, 64)
"""Multiples of the example's sizes at which one of the paths has to be taken. A choice: a loop that halves a size has
another path at each multiple."""
_MOST_LARGER = 4
"""Runs of the module at larger sizes at which no path is taken, to see whether it raises there. A choice."""


@dataclass(frozen=True)
class Path:
    """The graph of one path through a module's branches on sizes, and the conditions under which it is taken."""

    captured: Captured
    conditions: Sequence[SizeBranch]

    def is_taken(self, sizes: Mapping[Axis, int]) -> bool:
        """Whether inputs of these sizes take this path; True if that cannot be told."""
        return all(one.holds(sizes) for one in self.conditions)


class TorchJoined(TorchExport):
    """Traces at the example's sizes, and at sizes that take another side of the module's branches on sizes; the
    linter's patch keeps `int(…)` of sizes a size. An If with the conditions of the branches chooses between the graphs;
    nodes that both have stay before the If. The last traced path has no condition: it serves all inputs that take no
    other path."""

    title = "torch.export of both sides of branches on sizes + torch.onnx"
    rank = 18
    as_it_is = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a graph differs or has a fixed axis, and the module has branches on sizes."""
        return any(problem.id == "forward/size-compared" for problem in before)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        from onnxsmith.exporter.tracing.trace_patches import recomposing

        with recomposing(program, example) as lines, torch.no_grad():
            if lines.patch_all("forward/size-as-number"):
                try:
                    found = self._of_all_paths(program, example, opset)
                    return replace(found, notes=(*lines.notes, *found.notes))
                except OnnxsmithError:  # a patch took another number for a size, or the patches were not enough
                    pass
        return self._of_all_paths(program, example, opset)

    def side(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        """Returns the graph of the side that the example's sizes take."""
        return super().capture(program, example, opset)

    def _of_all_paths(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        captured = self.side(program, example, opset)
        paths = [Path(captured, captured.branches)]
        from onnxsmith.verification.inputs.size_proposals import of_feed

        now = of_feed(program.signature, example)
        axes = dynamic_axes(program)
        said: list[str] = []
        while len(paths) < _MOST_PATHS:
            found = self._another(program, example, opset, paths, now, axes)
            if found is None:
                break
            path, sizes = found
            paths.append(path)
            said.append(", ".join(f"{dim} = {size}" for dim, size in sizes.items() if now[dim] != size))
        if len(paths) == 1:
            raise one_sided(captured.branches)
        self._check_covered(program, example, paths, now, axes)
        return _joined(paths, program, said)

    def _check_covered(
        self,
        program: TorchProgram,
        example: Example,
        paths: Sequence[Path],
        now: Mapping[str, int],
        axes: Mapping[Axis, str],
    ) -> None:
        """Refuses the paths if none is taken at larger sizes that the module accepts. A loop on sizes has a path for
        each number of iterations, and the last path has no condition in the graph."""
        dims = sorted(set(axes.values()))
        together = [{**now, **{dim: now[dim] * by for dim in dims}} for by in _FACTORS]
        alone = [{**now, dim: now[dim] * by} for dim in dims for by in _FACTORS] if len(dims) > 1 else []
        asked = 0
        with TorchEager().prepare(program) as session:
            from onnxsmith.exporter.inputs.resized_examples import resized

            for sizes in (*together, *alone):
                if _has_path(paths, sizes, axes) or not within(sizes, program.limits):
                    continue
                asked += 1
                if asked > _MOST_LARGER:
                    return
                try:
                    session.run(resized(program, example, sizes))
                except OnnxsmithError:  # the module raises at these sizes, so no graph has to cover them
                    continue
                raise more_sides(paths[0].conditions, sizes)

    def _another(
        self,
        program: TorchProgram,
        example: Example,
        opset: int | None,
        paths: Sequence[Path],
        now: Mapping[str, int],
        axes: Mapping[Axis, str],
    ) -> tuple[Path, Mapping[str, int]] | None:
        """Returns another path and its sizes; None if the module takes no further path."""
        known = [branch for path in paths for branch in path.conditions]
        asked = 0
        with TorchEager().prepare(program) as session:
            from onnxsmith.exporter.inputs.resized_examples import resized

            for sizes in other_sizes(known, now, axes):
                if _has_path(paths, sizes, axes) or not within(sizes, program.limits):
                    continue
                asked += 1
                if asked > _MOST_SIZES:
                    return None
                grown = resized(program, example, sizes)
                try:
                    session.run(grown)
                    captured = self.side(program, grown, opset)
                except OnnxsmithError:  # the module refuses these sizes, or a line of that side fixes an axis
                    continue
                path = Path(captured, captured.branches)
                if _has_path([path], sizes, axes):
                    return path, sizes
        return None


def _has_path(paths: Sequence[Path], sizes: Mapping[str, int], axes: Mapping[Axis, str]) -> bool:
    """Whether inputs whose dimensions have these sizes take one of the paths."""
    at = {axis: sizes[dim] for axis, dim in axes.items()}
    return any(path.is_taken(at) for path in paths)


def _joined(paths: Sequence[Path], program: TorchProgram, sizes: Sequence[str]) -> Captured:
    """Joins the captured graphs of all paths. The last path is taken where no condition of the others holds. `sizes`
    says at which sizes the paths after the first were traced."""
    whole = paths[-1].captured.model
    lines: dict[str, None] = {}
    from onnxsmith.graph.surgery.alternative_models import either

    for index in reversed(range(len(paths) - 1)):
        deciding = _deciding(paths[index], paths[index + 1 :])
        lines.update(dict.fromkeys(one.line for one in deciding))
        whole = either(_condition(deciding, program), paths[index].captured.model, whole)
    first = paths[0].captured
    said = f"traced at {'; at '.join(sizes)} as well, for the other side of the branch on sizes at {', '.join(lines)}"
    own = dict.fromkeys(note for path in paths for note in path.captured.notes)
    notes = (f"{said}: the graph has an If", *own)
    return Captured(
        whole,
        first.how.replace(TorchExport.title, TorchJoined.title),
        bounds=_bounds([path.captured for path in paths]),
        notes=notes,
        numbers=numbers_of(path.captured for path in paths),
    )


def _deciding(path: Path, others: Sequence[Path]) -> list[SizeBranch]:
    """Returns the conditions of a path that not all later paths share: shared conditions hold on either side."""
    known = [{_normal(one) for one in other.conditions} for other in others]
    return [one for one in path.conditions if not all(_normal(one) in some for some in known)]


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
