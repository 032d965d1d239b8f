"""The original of a folder of graphs: a model of transformers, or another folder of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.base import alone
from onnxsmith.comparison.outputs.folders.graph_parts import Generation, GraphPart
from onnxsmith.comparison.outputs.folders.graph_ports import after, is_past
from onnxsmith.comparison.outputs.folders.layouts import DECODER, ENCODER, FIRST
from onnxsmith.comparison.outputs.folders.player import Sizes
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes

if TYPE_CHECKING:
    from onnxsmith.exporter.pretrained.original_calls import Original


@dataclass(frozen=True)
class _Place:
    """The number of texts, and the runtime that the user named."""

    rows: int
    runtime: str | None


class Reference(ABC):
    """The original of a comparison. `settings` are its configuration, `notes` what the reader has to know."""

    label: str
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @abstractmethod
    def cache_sizes(self) -> Sizes:
        """Returns the heads and the sizes of the caches."""

    @abstractmethod
    def takes(self, name: str) -> bool:
        """Whether the original has an input of this shared name."""

    @abstractmethod
    def side(self, part: GraphPart, rows: int) -> SideSource:
        """Returns the side of a comparison that computes what a graph of the candidate should compute for `rows` texts,
        with the graph's names."""

    def example(self) -> Mapping[str, Any]:
        """Returns the first input of an encoder by name, [1, …]."""
        return {}


class OfTransformers(Reference):
    """A model in a folder that transformers wrote."""

    def __init__(self, place: Path, *, has_encoder: bool, stack: ExitStack) -> None:
        eager = runtimes.get("torch-eager")  # raises, with installation advice, if torch is missing
        from onnxsmith.exporter.pretrained.original_calls import generator

        stack.enter_context(alone())
        self._eager = eager
        try:
            self._original: Original = generator(str(place), has_encoder=has_encoder)
        except OnnxsmithError as error:
            if error.problem.id != "export/task":
                raise
            raise problem(
                "compare/folder-original",
                f"the original is no model that generates text {'after an encoder' if has_encoder else 'by itself'}",
                where=str(place),
                why=error.problem.what,
                fix="give the folder of the model from which the graphs were exported as REFERENCE",
            ) from error
        self.label = f"{place.resolve().name} in PyTorch, eager"
        self.settings = self._original.settings
        self.notes = tuple(f"{place.resolve().name}: {note}" for note in self._original.notes)

    def cache_sizes(self) -> Sizes:
        return self._original.cache_sizes()

    def takes(self, name: str) -> bool:
        if self._original.has_encoder and name in ("encoder_hidden_states", "encoder_attention_mask"):
            return name != "encoder_attention_mask" or self._original.takes("attention_mask")
        return self._original.takes(name)

    def side(self, part: GraphPart, rows: int) -> SideSource:
        program = self._original.program(part.interface, part.names.inputs, part.names.outputs)
        return SideSource(self.label, program, self._eager, part.interface, named=False)

    def example(self) -> Mapping[str, Any]:
        return {name: value.numpy() for name, value in self._original.example.items()}


class OfGraphs(Reference):
    """Another folder of graphs."""

    def __init__(self, label: str, generation: Generation, settings: Mapping[str, Any], runtime: str | None) -> None:
        self._generation, self._runtime = generation, runtime
        self.label, self.settings = label, settings

    def cache_sizes(self) -> Sizes:
        found = {}
        for part in self._generation.parts:
            for port in part.interface.outputs:
                name, shape = part.names.outputs[port.name], port.shape or ()
                if name.startswith("present.") and len(shape) == 4:
                    found[name] = (shape[1], shape[3])
        strange = [name for name, sizes in found.items() if not all(isinstance(size, int) for size in sizes)]
        if strange:
            raise problem(
                "compare/folder-original",
                f"{self.label} does not say how many heads its caches have",
                where=strange[0],
                why="the file declares no fixed sizes for the heads and their size",
                fix="give the folder of the model in transformers as REFERENCE",
            )
        return {name: (int(heads), int(size)) for name, (heads, size) in found.items()}

    def takes(self, name: str) -> bool:
        every = {shared for part in self._generation.parts for shared in part.names.inputs.values()}
        return name in every

    def side(self, part: GraphPart, rows: int) -> SideSource:
        own = self._generation
        mine = own.encoder if part.role == ENCODER else own.first if part.role == FIRST else own.later
        mine = own.first if mine is None and part.role == DECODER else mine
        if mine is None:
            raise problem(
                "compare/folder-part",
                f"{self.label} has no graph for the {part.role}",
                where=part.file.name,
                fix="give a folder of graphs with the same parts, or the model in transformers as REFERENCE",
            )
        return _with_names(mine, part, self.cache_sizes(), self.label, _Place(rows, self._runtime))


def _with_names(mine: GraphPart, part: GraphPart, sizes: Sizes, label: str, place: _Place) -> SideSource:
    """Returns the reference's graph with the ports of the candidate's graph. A first call has no past: caches that only
    the reference's graph takes are empty, and those that only the candidate's takes are not read."""
    inputs, outputs = ({shared: own for own, shared in of.items()} for of in (part.names.inputs, part.names.outputs))
    same = mine.names == part.names
    model = mine.model if same else cloned(mine.model)
    if not same:
        for value in list(model.graph.inputs):
            shared = mine.names.inputs[value.name or ""]
            if shared in inputs:
                value.name = inputs[shared]
            elif is_past(shared):
                _empty(model, value, (place.rows, sizes[after(shared)][0], 0, sizes[after(shared)][1]))
        known = {*mine.names.inputs.values()}
        for value in part.model.graph.inputs:
            if part.names.inputs[value.name or ""] not in known:
                model.graph.inputs.append(ir.Value(name=value.name, type=value.type, shape=value.shape))
        for value in list(model.graph.outputs):
            shared = mine.names.outputs[value.name or ""]
            if shared in outputs:
                value.name = outputs[shared]
            else:
                model.graph.outputs.remove(value)
    name = place.runtime or runtimes.default()
    return SideSource(
        f"{label}/{mine.file.name} on {name}",
        mine.source if same else model,
        runtimes.get(name),
        signature(model),
        model=model,
        named=place.runtime is not None,
    )


def _empty(model: ir.Model, value: ir.Value, shape: tuple[int, ...]) -> None:
    """Replaces a graph input by an empty constant."""
    model.graph.inputs.remove(value)
    kind = (value.dtype or ir.DataType.FLOAT).numpy()
    value.const_value = ir.tensor(np.zeros(shape, kind), name=value.name)
    model.graph.register_initializer(value)
