"""Axes requested as dynamic that the trace fixed."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.probes.base import Case, Probe


class Axes(Probe):
    """Reports the line that torch names for each axis, unless the linter has reported that line."""

    rank = 50

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or not case.symbols:
            return
        reported = [one for one in case.found if one.first]
        dims = {port.name: port.shape or () for port in case.built.program.signature.inputs}
        for one in case.traced.frozen:
            file, _, number = one.line.rpartition(":")
            if any(f.problem.where.startswith(f"{file}:") and f.first <= int(number or 0) <= f.last for f in reported):
                continue
            name = dims[one.port][one.axis]
            yield Finding(
                Problem(
                    "export/frozen-axis",
                    f"axis {one.axis} of input {one.port!r} ({name}) is fixed to {one.value} by the model",
                    where=one.line,
                    why="this line works for one size only: it has a number in the code, a shape that must match "
                    "another shape, or a size that was turned into a Python number",
                    fix=f"make the line follow the size ({one.port}.shape[{one.axis}] without int(), -1 in a reshape), "
                    f"or leave {one.port}:{one.axis} out of --dynamic",
                ),
                Weight.NOTE if case.dynamic else Weight.STOPS,
                "recompose",
                said=f"{name} was inferred to be a constant ({one.value})",
            )
        if any(one.weight is Weight.WRONG for one in reported):
            return
        for port, axes in dims.items():
            for axis, dim in enumerate(axes):
                if dim in case.stuck:
                    yield self._stuck(case, port, axis, str(dim))

    def _stuck(self, case: Case, port: str, axis: int, name: str) -> Finding:
        size = case.example[port].shape[axis]  # type: ignore[attr-defined]
        return Finding(
            Problem(
                "export/frozen-axis",
                f"axis {axis} of input {port!r} ({name}) was seen at size {size} only",
                where=type(case.model.module).__qualname__,
                why="the module rejects every other size that was tried, so the axis could not be verified as dynamic",
                fix=f"look for the number {size} in forward and in the shapes of parameters, or leave {port}:{axis} "
                "out of --dynamic",
            ),
            Weight.NOTE,
            "recompose",
        )
