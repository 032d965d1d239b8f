"""Writes which part of each weight stayed, so that the same can be done to a torch module."""

from __future__ import annotations

import json

import onnx_ir as ir

from onnxsmith.precision.pruning.surgery import Kept

Axes = dict[str, list[int]]


def of(model: ir.Model, kept: Kept) -> dict[str, Axes]:
    """For each weight that became smaller, by name: the axes, and the indices that stayed along each."""
    found: dict[str, Axes] = {}
    for (name, axis), indices in sorted(kept.items()):
        if name in model.graph.initializers:
            found.setdefault(name, {})[str(axis)] = [int(index) for index in indices]
    return found


def text(found: dict[str, Axes]) -> str:
    """The list as JSON, a weight on each line."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(axes)}" for name, axes in found.items())
    return "{\n" + lines + "\n}\n"
