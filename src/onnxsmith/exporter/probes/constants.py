"""Inputs that became constants: the module's results depend on them, the graph's do not."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.probes.base import Case, Probe

_LEAVE = ("forward/numpy", "forward/data-attribute", "forward/copied-tensor", "forward/python-value")
"""Problems of lines at which a tensor's values leave the trace."""


class Constants(Probe):
    """Examines the graph that agrees with the module, or else the first graph."""

    rank = 65

    def look(self, case: Case) -> Iterator[Finding]:
        graph = next((way.made.graph for way in sorted(case.ways, key=lambda way: not way.agrees) if way.made), None)
        if case.built is None or graph is None:
            return
        lines = [one.problem.where for one in case.found if one.problem.id in _LEAVE]
        where = lines[0] if lines else type(case.model.module).__qualname__
        for problem in baked_inputs.constant_inputs(case.built, graph.model, where):
            yield Finding(problem, Weight.WRONG, "recompose")
