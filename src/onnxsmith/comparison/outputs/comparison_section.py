"""Cuts the same part out of both sides of a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.editor.edit import Edit
from onnxsmith.editor.steps.extract import Extract
from onnxsmith.graph.structure.signature import signature


@dataclass(frozen=True)
class Section:
    """The tensors between which both models are cut, by name or as selectors. Empty means the graph inputs or
    outputs."""

    start: Sequence[Any] = ()
    end: Sequence[Any] = ()

    def __bool__(self) -> bool:
        return bool(self.start or self.end)


WHOLE = Section()
"""From the graph inputs to the graph outputs: nothing is cut."""


def sections(section: Section, a: SideSource, b: SideSource) -> tuple[SideSource, SideSource]:
    """Returns both sides, each cut to the part by `extract`. If both sides are one file, it is cut once.

    Raises:
        OnnxsmithError: `compare/no-part` for a side that is no ONNX graph; `edit/…` if a model has no such part.
    """
    first = _cut(section, a)
    same = a.model is not None and a.model is b.model
    return first, _moved(first, b) if same else _cut(section, b)


def _cut(section: Section, side: SideSource) -> SideSource:
    if side.model is None:
        raise problem(
            "compare/no-part",
            "only ONNX models can be compared in part",
            where=side.label,
            why="a torch model has no tensors by name before it is exported",
            fix="export it, and compare the file",
        )
    try:
        edit = Edit(side.model, None, verify=False)
        edit.apply([Extract(from_=list(section.start) or None, to=list(section.end) or None)])
    except OnnxsmithError as error:
        found = error.problem
        raise OnnxsmithError(dataclasses.replace(found, where=f"{side.label}, {found.where}")) from error.__cause__
    return _moved(replace(side, model=edit.model), side)


def _moved(cut: SideSource, side: SideSource) -> SideSource:
    """Returns the side with the graph of another side that was cut."""
    assert cut.model is not None
    name, _, runtime = side.label.rpartition(" on ")
    label = f"a part of {name} on {runtime}"
    return replace(side, label=label, source=cut.model, model=cut.model, interface=signature(cut.model))
