"""Writes into a file and a report how the state of a graph is handed from call to call, or that it is dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.verification import State, StatePair
from onnxsmith.base.words import first_few
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.state_pairs import METADATA, Carried
from onnxsmith.graph.structure.signature import Port, signature

_MOST_NAMES = 3
"""Limits the names in a clause of the headline. A choice."""


def check_fits(model: ir.Model, carried: Carried) -> None:
    """Refuses a graph whose new state does not fit its input.

    Raises:
        OnnxsmithError: `export/state` with the axis, and the dynamic axes with which it fits.
    """
    inputs = {port.name: port for port in signature(model).inputs}
    for port, output in _ports(model, carried):
        for axis, (took, gave) in enumerate(zip(port.shape or (), output.shape or (), strict=False)):
            if isinstance(took, int) and isinstance(gave, str):
                symbols = [dim for one in inputs.values() for dim in one.shape or ()]
                named = gave if gave in symbols else f"{port.name}.{axis}"
                raise problem(
                    "export/state",
                    f"axis {axis} of {port.name!r} has the fixed size {took}, but {output.name!r}, its value for the "
                    f"next call, has the size {gave}",
                    where=port.name,
                    why="a dynamic axis of another input is also an axis of the state",
                    fix=f'--dynamic "{port.name}:{axis}={named}"',
                )


def record(model: ir.Model, carried: Carried) -> None:
    """Stores the pairs and the values of the first call in the file's metadata."""
    inputs = {port.name: port for port in signature(model).inputs}
    outputs = {port.name: output.name for port, output in _ports(model, carried)}
    kept = replace(carried, initial={name: value for name, value in carried.initial.items() if name in inputs})
    model.metadata_props[METADATA] = json.dumps(list(kept.described(inputs, outputs)))


def part(model: ir.Model, carried: Carried, *, steps: bool) -> State:
    """Returns the report's part on the state."""
    pairs = tuple(
        StatePair(port.name, output.name, carried.places[port.name], _said(carried.initial[port.name], port))
        for port, output in _ports(model, carried)
    )
    from onnxsmith.exporter.state.state_feeding import CALLS

    return State(pairs, METADATA, CALLS if steps else 0)


def _ports(model: ir.Model, carried: Carried) -> list[tuple[Port, Port]]:
    """Returns the input and the output of each tensor of the state; the outputs of the state are the last ones."""
    found = signature(model)
    inputs = {port.name: port for port in found.inputs}
    outputs = found.outputs[len(found.outputs) - len(carried.initial) :]
    return [(inputs[name], port) for name, port in zip(carried.initial, outputs, strict=True) if name in inputs]


def _said(value: np.ndarray[Any, Any], port: Port) -> str:
    """Describes the value of the first call: `zeros float[1,4]`, or where it is stored."""
    kind = f"{port.dtype}[{','.join(map(str, value.shape))}]"
    flat = value.reshape(-1)
    if not flat.size:
        return f"empty {kind}"
    if value.dtype.kind in "fiub" and bool((flat == flat[0]).all()):
        return f"{f'{flat[0]:g}' if flat[0] else 'zeros'} {kind}" if flat.size > 1 else f"{flat[0].item():g} {kind}"
    return f"{kind}, in the file's metadata"


def dropped(model: TorchModel) -> str:
    """Returns a clause for the headline if the first call changes the results of later calls; empty otherwise. Runs the
    module."""
    from onnxsmith.exporter.state import module_steps

    try:
        steps = module_steps.stepped(model)
    except Exception:  # noqa: BLE001 — the module takes one call only; then no later call reads anything
        return ""
    first = steps.results[0]
    if all(module_steps.alike(first, later) for later in steps.results[1:]):
        return ""
    tensors = [place.name for place in steps.changed]
    names = tensors or [*steps.counted]
    if not names:
        return "the state that the module keeps is dropped, so every call starts like the first call"
    shown = first_few(names, _MOST_NAMES)
    if tensors:
        return f"the state {shown} is dropped, so every call starts like the first call (--state auto keeps the state)"
    return (
        f"the state {shown} is dropped, so every call starts like the first call (--state auto would keep a state "
        "in a buffer)"
    )
