"""Writes which part of each weight stayed, so that the same can be done to a torch module."""

from __future__ import annotations

import json
from pathlib import Path

import onnx_ir as ir

from onnxsmith.folders import replacing
from onnxsmith.precision.pruning.surgery import Kept
from onnxsmith.problem import problem

Axes = dict[str, list[int]]


def of(model: ir.Model, kept: Kept) -> dict[str, Axes]:
    """For each weight that became smaller, by name: the axes, and the indices that stayed along each."""
    found: dict[str, Axes] = {}
    for (name, axis), indices in sorted(kept.items()):
        if name in model.graph.initializers:
            found.setdefault(name, {})[str(axis)] = [int(index) for index in indices]
    return found


def write(path: Path, found: dict[str, Axes]) -> None:
    """Writes the list as JSON, completely or not at all.

    Raises:
        OnnxsmithError: `save/failed`.
    """
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(axes)}" for name, axes in found.items())
    try:
        with replacing(path) as aside:
            aside.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    except OSError as error:
        raise problem("save/failed", "the list could not be written", where=str(path), why=str(error)) from error
