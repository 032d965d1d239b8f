"""Writes which part of each weight stayed, so that the same can be done to a torch module."""

from __future__ import annotations

import json

import onnx_ir as ir

from onnxsmith.precision.pruning.surgery import Kept
from onnxsmith.precision.pruning.torch_names import Parameter, merged, parameters

Axes = dict[str, list[int]]


def of(model: ir.Model, kept: Kept) -> dict[str, Axes]:
    """For each weight that became smaller: the axes, and the indices that stayed along each. A weight has the name and
    the axes of its torch parameter, where the file says which one it is, else those of the file."""
    known, behind = parameters(model), merged(model)
    found: dict[str, Axes] = {}
    for (name, axis), indices in sorted(kept.items()):
        if name in model.graph.initializers:
            for one in known.get(name, [Parameter(name)]):
                own = 1 - axis if one.is_transposed else axis
                found.setdefault(one.name, {})[str(own)] = [int(index) for index in indices]
        for norm in behind.get(name, []) if axis == 1 else ():
            found[norm] = {"0": [int(index) for index in indices]}
    return {name: dict(sorted(axes.items())) for name, axes in sorted(found.items())}


def text(found: dict[str, Axes]) -> str:
    """The list as JSON, a weight on each line."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(axes)}" for name, axes in found.items())
    return "{\n" + lines + "\n}\n"
