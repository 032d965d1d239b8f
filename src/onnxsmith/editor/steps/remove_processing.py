"""`remove-processing`: takes out what `preprocess` and `postprocess` put into a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.handles import TensorHandle
from onnxsmith.editor.processing import marks
from onnxsmith.editor.processing.marks import Processing
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import dtypes


@dataclass(frozen=True)
class RemoveProcessing(Step):
    """Takes out the processing that `preprocess` and `postprocess` put into the model, and restores its inputs and
    outputs. `port` is the picture, or an output, of the processing to take out; without it, all of it goes."""

    first = ("port",)

    port: Any = None

    def apply(self, work: Work) -> str:
        return "; ".join(_taken_out(work, one) for one in self._selected(work.model))

    def _selected(self, model: ir.Model) -> list[Processing]:
        found = marks.found(model)
        ports = {one.name: _ports(model, one) for one in found}
        name = self.port.name if isinstance(self.port, TensorHandle) else self.port
        chosen = [one for one in found if name is None or name in ports[one.name]]
        if chosen:
            return chosen
        others = [port for held in ports.values() for port in held]
        raise problem(
            "edit/no-processing",
            "the model has no processing" if name is None or not found else f"no processing has the port {name!r}",
            where="" if name is None else str(name),
            why="no node has the metadata onnxsmith.processing, which the steps preprocess and postprocess write"
            if not found
            else f"the ports of the processing are {', '.join(others)}",
            fix=f"write port = {others[0]!r}" if others else "leave the step out",
        )


def _ports(model: ir.Model, processing: Processing) -> list[str]:
    if processing.is_before:
        return [marks.picture_of(model, processing)[0].name or ""]
    return [value.name or "" for value in model.graph.outputs if value.producer() in processing.nodes]


def _taken_out(work: Work, processing: Processing) -> str:
    is_own = processing.name in work.processing  # a step of this edit put it in, so the original lacks it
    gone, restored = marks.take_out(work.model, processing)
    names, ports = [value.name or "" for value in restored], work.inputs if processing.is_before else work.outputs
    olds = [ports.pop(value.name or "", None) for value in gone]
    _rename_outputs(work, is_own=is_own)
    for at, (value, name) in enumerate(zip(restored, names, strict=True)):
        ports[name] = (olds[at] if at < len(olds) else None) if is_own else name
        work.declare(value)
    if processing.is_before:
        readers = (node for value in restored for node in (use.node for use in value.uses()))
        work.reshape(*(one for node in readers for one in node.outputs))
        for value, shape in marks.shapes_before(work.model, processing).items():
            work.restore_shape(value, shape)
    if not is_own:
        work.adapt_reference.append(partial(_without, name=processing.name))
    was = ", ".join(value.name or "" for value in gone)
    now = ", ".join(f"{value.name} {dtypes.shown(value.dtype)}{value.shape or ''}" for value in restored)
    return f"{processing.name}: {was} → {now}"


def _rename_outputs(work: Work, *, is_own: bool) -> None:
    """Gives an output that is also the restored input the name of the input again."""
    held: Mapping[str, Any] = dict(work.outputs)
    names = {value.name or "" for value in work.model.graph.outputs}
    lost = [name for name in held if name not in names]
    new = [name for name in names if name not in held]
    for name, old in zip(lost, new, strict=False):
        was = work.outputs.pop(name)
        work.outputs[old] = was if is_own else old


def _without(model: ir.Model, name: str) -> ir.Model:
    """Returns the original of the comparison without the processing."""
    for one in marks.found(model):
        if one.name == name:
            marks.take_out(model, one)
    return model
