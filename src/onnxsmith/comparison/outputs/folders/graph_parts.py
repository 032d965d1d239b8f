"""Opens the graphs of a folder as the parts of a model that generates text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, pasted
from onnxsmith.comparison.outputs.folders import graph_ports, layouts
from onnxsmith.comparison.outputs.folders.graph_ports import SWITCHES, PortNames, names_of
from onnxsmith.comparison.outputs.folders.layouts import DECODER, ENCODER, FIRST, LATER, MERGED, GraphFolder
from onnxsmith.graph.files.load import load_sorting
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Port, Signature, signature

_COUNTS_MASK = "GroupQueryAttention"
"""This operator counts the ones of a mask. It reads no gaps."""


@dataclass(eq=False)
class GraphPart:
    """A graph in one role. `source` is its file, or the graph without its switches and without the outputs that are not
    compared."""

    role: str
    file: Path
    model: ir.Model
    source: Path | ir.Model
    names: PortNames
    is_switched: bool = False
    """Whether the file has a switch between the first call and later calls."""

    @cached_property
    def interface(self) -> Signature:
        """The signature of the graph."""
        return signature(self.model)

    @property
    def label(self) -> str:
        """Returns the file with its role, if the file has several."""
        return f"{self.file.name}, {self.role}" if self.is_switched else self.file.name

    def port(self, shared: str) -> Port | None:
        """Returns the input of this shared name."""
        return next((one for one in self.interface.inputs if self.names.inputs[one.name] == shared), None)

    @property
    def layers(self) -> int:
        """Returns the number of layers with a cache among the outputs."""
        return len({name.split(".")[1] for name in self.names.outputs.values() if name.startswith("present.")})

    @property
    def reads_gaps(self) -> bool:
        """Whether a mask may have zeros between ones."""
        return all(node.op_type != _COUNTS_MASK for node in walk.all_nodes(self.model))


@dataclass(frozen=True)
class Generation:
    """A way to generate text with the graphs of a folder: the first call, and later calls with caches. `later` is None
    if the graphs have no caches: then one call reads the whole text."""

    name: str
    encoder: GraphPart | None
    first: GraphPart
    later: GraphPart | None

    @property
    def parts(self) -> tuple[GraphPart, ...]:
        """Returns the graphs, each once."""
        every = (self.encoder, self.first, self.later)
        return tuple(dict.fromkeys(one for one in every if one is not None))

    @property
    def has_encoder(self) -> bool:
        """Whether an encoder reads the input."""
        return self.encoder is not None


def generations(folder: GraphFolder) -> tuple[Generation, ...]:
    """Returns the ways to generate text with the graphs of a folder; none if its graph reads and returns no caches.

    Raises:
        OnnxsmithError: the errors of loading a graph; `compare/folder-part` if a graph does not fit its role.
    """
    return tuple(_generations(folder))


def _generations(folder: GraphFolder) -> Iterator[Generation]:
    files, has_encoder = folder.files, ENCODER in folder.files
    encoder = _part(files[ENCODER], ENCODER, folder, has_encoder=True) if has_encoder else None
    if DECODER in files:
        inputs = [port.name for port in signature(load_sorting(files[DECODER])[0]).inputs]
        if names_of(inputs, (), role=DECODER, has_encoder=False, given=folder.names).past:
            part = _part(files[DECODER], DECODER, folder, has_encoder=False)
            yield Generation(part.file.name, None, part, part)
    if MERGED in files:
        first = _part(files[MERGED], FIRST, folder, has_encoder=has_encoder)
        if first.is_switched:
            second = _part(files[MERGED], LATER, folder, has_encoder=has_encoder)
            yield Generation(first.file.name, encoder, first, second)
        else:
            yield _of_one(encoder, first)
    if FIRST in files:
        first = _part(files[FIRST], FIRST, folder, has_encoder=has_encoder)
        if LATER in files:
            second = _part(files[LATER], LATER, folder, has_encoder=has_encoder)
            yield Generation(f"{first.file.name} and {second.file.name}", encoder, first, second)
        elif first.names.past:
            yield _of_one(encoder, first)
        elif not first.layers:
            yield Generation(first.file.name, encoder, first, None)
        elif MERGED not in files:
            raise layouts.missing(
                folder.path, ["decoder_with_past_model.onnx"], f"{first.file.name} returns caches for later calls"
            )


def _of_one(encoder: GraphPart | None, part: GraphPart) -> Generation:
    """Returns a generation in which one graph makes all calls of the decoder."""
    part.role = DECODER
    return Generation(part.file.name, encoder, part, part)


def _part(file: Path, role: str, folder: GraphFolder, *, has_encoder: bool) -> GraphPart:
    model, was_sorted = load_sorting(file)
    inputs, outputs = ([one.name or "" for one in ports] for ports in (model.graph.inputs, model.graph.outputs))
    names = names_of(inputs, outputs, role=role, has_encoder=has_encoder, given=folder.names)
    switches = {name: SWITCHES[name][role == LATER] for name in inputs if name in SWITCHES}
    # A merged file returns no caches of the encoder in later calls: its outputs of this name are empty.
    lost = [
        name
        for name in outputs
        if name not in names.outputs or (switches and role == LATER and ".encoder." in names.outputs[name])
    ]
    if len(lost) == len(outputs):
        raise _unfit(file, f"its outputs are {first_few(outputs, 5)}, and none has a name that is known for this role")
    if switches or lost:
        model = _narrowed(model, switches, lost)
    kept = PortNames(
        {own: name for own, name in names.inputs.items() if own not in switches},
        {own: name for own, name in names.outputs.items() if own not in lost},
    )
    is_own = bool(switches or lost or was_sorted)
    return GraphPart(role, file, model, model if is_own else file, kept, bool(switches))


def _narrowed(model: ir.Model, switches: Mapping[str, int], lost: list[str]) -> ir.Model:
    """Returns a copy with constants in place of switches, without some outputs."""
    made = cloned(model)
    for value in [one for one in made.graph.inputs if one.name in switches]:
        made.graph.inputs.remove(value)
        shape = [size if isinstance(size, int) else 1 for size in value.shape or ()]
        kind = (value.dtype or ir.DataType.INT64).numpy()
        value.const_value = ir.tensor(np.full(shape, switches[value.name or ""], kind), name=value.name)
        made.graph.register_initializer(value)
    for value in [one for one in made.graph.outputs if one.name in lost]:
        made.graph.outputs.remove(value)
    return made


def fits(part: GraphPart, known: Mapping[str, tuple[int, int]], takes: frozenset[str], original: str) -> None:
    """Refuses a part whose inputs the original does not have, or whose caches are those of another model. `known` are
    the heads and the sizes of the original's caches, `takes` its inputs.

    Raises:
        OnnxsmithError: `compare/folder-part`.
    """
    strange = [own for own, name in part.names.inputs.items() if not graph_ports.is_past(name) and name not in takes]
    if strange:
        raise _unfit(part.file, f"{original} has no input like {first_few(strange, 3)}")
    caches = {name for name in part.names.outputs.values() if name.startswith("present.")}
    caches |= {graph_ports.after(name) for name in part.names.past.values()}
    more = sorted(caches - known.keys())
    layers = {name.split(".")[1] for name in known}
    if more or (caches and {name.split(".")[1] for name in caches} != layers):
        has = len({name.split(".")[1] for name in caches})
        raise _other_model(part, f"it has caches of {has} layers, and {original} has {len(layers)} layers")
    for port in part.interface.inputs:
        name = part.names.inputs[port.name]
        if not graph_ports.is_past(name) or port.shape is None or len(port.shape) != 4:
            continue
        heads, size = known[graph_ports.after(name)]
        fixed = [(dim, wanted) for dim, wanted in ((port.shape[1], heads), (port.shape[3], size)) if dim != wanted]
        if any(isinstance(dim, int) for dim, _ in fixed):
            raise _other_model(
                part, f"{port.name} has {port.shape[1]} heads of size {port.shape[3]}, {original} has {heads} of {size}"
            )


def _other_model(part: GraphPart, why: str) -> OnnxsmithError:
    return problem(
        "compare/folder-part",
        f"{part.file.name} is a graph of another model",
        where=str(part.file),
        why=why,
        fix="give the folder of the model from which the graph was exported as REFERENCE",
    )


def _unfit(file: Path, why: str) -> OnnxsmithError:
    return problem(
        "compare/folder-part",
        f"{file.name} does not have the inputs and outputs of its role",
        where=str(file),
        why=why,
        fix=f"see its inputs and outputs: `onnxsmith inspect {pasted(file)}`; compare it by itself with a module that "
        "has them",
    )
