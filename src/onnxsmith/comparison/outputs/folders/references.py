"""The original of a folder of graphs: a model of transformers, or another folder of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.base import alone
from onnxsmith.comparison.outputs.folders.graph_parts import Generation, GraphPart
from onnxsmith.comparison.outputs.folders.player import Sizes
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes

if TYPE_CHECKING:
    from onnxsmith.exporter.pretrained.original_calls import Original


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
    def side(self, part: GraphPart) -> SideSource:
        """Returns the side of a comparison that computes what a graph of the candidate should compute, with the
        graph's names."""

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
        self._original: Original = generator(str(place), has_encoder=has_encoder)
        self.label = f"{place.resolve().name} in PyTorch, eager"
        self.settings = self._original.settings
        self.notes = tuple(f"{place.resolve().name}: {note}" for note in self._original.notes)

    def cache_sizes(self) -> Sizes:
        return self._original.cache_sizes()

    def takes(self, name: str) -> bool:
        if self._original.has_encoder and name in ("encoder_hidden_states", "encoder_attention_mask"):
            return name != "encoder_attention_mask" or self._original.takes("attention_mask")
        return self._original.takes(name)

    def side(self, part: GraphPart) -> SideSource:
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

    def side(self, part: GraphPart) -> SideSource:
        mine = {
            "encoder": self._generation.encoder,
            "later calls": self._generation.later,
        }.get(part.role, self._generation.first)
        if mine is None:
            raise problem(
                "compare/folder-part",
                f"{self.label} has no graph for the {part.role}",
                where=part.file.name,
                fix="give a folder of graphs with the same parts, or the model in transformers as REFERENCE",
            )
        return _with_names(mine, part, self.label, self._runtime)


def _with_names(mine: GraphPart, part: GraphPart, label: str, runtime: str | None) -> SideSource:
    """Returns the reference's graph with the port names and the outputs of the candidate's graph."""
    inputs, outputs = ({name: own for own, name in of.items()} for of in (part.names.inputs, part.names.outputs))
    same = all(own == inputs.get(name) for own, name in mine.names.inputs.items()) and (
        dict(mine.names.outputs) == dict(part.names.outputs)
    )
    model = mine.model if same else cloned(mine.model)
    if not same:
        for value in model.graph.inputs:
            value.name = inputs.get(mine.names.inputs[value.name or ""], value.name)
        for value in list(model.graph.outputs):
            shared = mine.names.outputs[value.name or ""]
            if shared in outputs:
                value.name = outputs[shared]
            else:
                model.graph.outputs.remove(value)
    name = runtime or runtimes.default()
    source = mine.source if same else model
    return SideSource(
        f"{label}/{mine.file.name} on {name}", source, runtimes.get(name), signature(model), model=model,
        named=runtime is not None,
    )  # fmt: skip
