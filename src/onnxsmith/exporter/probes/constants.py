"""Inputs that became constants: the module follows them, the graph does not."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.exporter.graph import baked
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.report.parts.diagnosis import Finding, Weight

_LEAVE = ("forward/numpy", "forward/data-attribute", "forward/copied-tensor", "forward/python-value")
"""Where a tensor's values leave what torch follows."""


class Constants(Probe):
    """Asked of the graph that is delivered, or of the first that there is."""

    rank = 65

    def look(self, case: Case) -> Iterator[Finding]:
        graph = next((way.made.graph for way in sorted(case.ways, key=lambda way: not way.agrees) if way.made), None)
        if case.built is None or graph is None:
            return
        lines = [one.problem.where for one in case.found if one.problem.id in _LEAVE]
        where = lines[0] if lines else type(case.model.module).__qualname__
        for problem in baked.constant_inputs(case.built, graph.model, where):
            yield Finding(problem, Weight.WRONG, "recompose")
