"""Leaves out the inputs that have a default value: before IR version 4, every weight of a file is also a graph input.

Such inputs are optional. A comparison that gives them no value compares with their defaults, and the weights are
constants of the graph.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.base.words import first_few, several
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Port, Signature

_SHOWN = 5
"""Limits the optional inputs that a note names. A choice: one line."""


def with_common_inputs(a: SideSource, b: SideSource) -> tuple[SideSource, SideSource, tuple[str, ...]]:
    """Returns both sides without the optional inputs that only one of them has, with notes on those. If the required
    inputs have different names, no optional input is kept, because inputs are then paired by position. An input that
    one side requires is required on both."""
    names = [{port.name: port for port in side.interface.inputs} for side in (a, b)]
    needed = [{port.name for port in side.interface.required()} for side in (a, b)]
    shared = names[0].keys() & names[1].keys() if needed[0] <= names[1].keys() and needed[1] <= names[0].keys() else ()
    notes = []
    made = []
    for side in (a, b):
        lost = [port for port in side.interface.inputs if port.default and port.name not in shared]
        if lost:
            said = first_few([port.name for port in lost], _SHOWN)
            notes.append(f"{side.label}: {several(len(lost), 'optional input')} kept their default values: {said}")
        kept = [port for port in side.interface.inputs if port not in lost]
        ports = tuple(replace(p, default=False) if p.name in needed[0] | needed[1] else p for p in kept)
        made.append(_with_inputs(side, ports) if ports != side.interface.inputs else side)
    return made[0], made[1], tuple(notes)


def with_fixed_defaults(side: SideSource, given: Collection[str]) -> SideSource:
    """Returns the side with constants in place of the optional inputs that are not `given`. Its runtime still gets the
    file as it is."""
    kept = tuple(port for port in side.interface.inputs if not port.default or port.name in given)
    names = {port.name for port in kept}
    if side.model is None or all(value.name in names for value in side.model.graph.inputs):
        return side
    return replace(_with_inputs(side, kept), model=_without_inputs(side.model, names), is_as_in_file=False)


def _with_inputs(side: SideSource, ports: tuple[Port, ...]) -> SideSource:
    return replace(side, interface=Signature(ports, side.interface.outputs))


def _without_inputs(model: ir.Model, names: Collection[str]) -> ir.Model:
    """Returns a copy whose initializers are no graph inputs, except those in `names`."""
    made = cloned(model)
    for value in list(made.graph.inputs):
        if value.is_initializer() and value.name not in names:
            made.graph.inputs.remove(value)
    made.ir_version = max(made.ir_version or 0, _LEAST_IR)
    return made


_LEAST_IR = 4
"""Holds the first IR version in which an initializer need not be a graph input."""
