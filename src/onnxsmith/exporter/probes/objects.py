"""Arguments of forward that are objects with tensors inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.exporter.probes.base import Case, Probe


class Objects(Probe):
    """Reports objects that cannot be unpacked: neither registered with torch nor plain
    (`exporter/inputs/object_flattening.py`)."""

    rank = 30

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None:
            return
        for leaf, held in baked_inputs.closed_objects(case.built.program):
            yield self._finding(leaf, held, case)

    def _finding(self, leaf: Any, held: list[str], case: Case) -> Finding:
        kind = type(leaf).__name__
        parameters = list(signature(case.model.module.forward).parameters)
        given = {**dict(zip(parameters, case.model.args, strict=False)), **case.model.kwargs}
        named = next((name for name, value in given.items() if value is leaf), "")
        others = [name for name in given if name != named]
        made = "\n".join(f"        held.{name} = {name}" for name in held)
        passed = ", ".join("held" if name == named else name for name in given)
        code = (
            f"class Flat(torch.nn.Module):\n"
            f"    def __init__(self, net):\n"
            f"        super().__init__()\n"
            f"        self.net = net\n\n"
            f"    def forward(self, {', '.join([*others, *held])}):\n"
            f"        held = {kind}.__new__({kind})\n"
            f"{made}\n"
            f"        return self.net({passed})"
        )
        return Finding(
            Problem(
                "export/object-input",
                f"{named or 'an argument'} of forward is a {kind}, an object that cannot be unpacked",
                where=type(case.model.module).__qualname__,
                why=f"its tensors ({', '.join(held)}) become constants of the graph, which torch calls lifted_tensor_…",
                fix="wrap the module: pass the tensors to forward as separate arguments, and build the object inside",
            ),
            Weight.WRONG,
            "recompose",
            code=code if named else "",
        )
