"""Makes the scene of one model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.report.model_files import ModelFile
from onnxsmith.base.report.parts._text import size
from onnxsmith.graph.model_identity import model_file
from onnxsmith.graph.reading.scopes import function_name
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.viewer import scene
from onnxsmith.viewer.numbering import Numbering
from onnxsmith.viewer.room_contents import furnished
from onnxsmith.viewer.stored_tensors import described


@dataclass(eq=False)
class Viewed:
    """A model with its scene. `nodes` and `values` are the numbers in the scene, `aliases` rooms by paths, `file` has
    the hashes of the file, None without a file."""

    source: ir.Model
    scene: scene.Model
    nodes: dict[ir.Node, int]
    values: dict[ir.Value, int]
    aliases: dict[str, int]
    notes: list[str]
    file: ModelFile | None


def viewed(source: ir.Model, path: Path | None, shapes: str) -> Viewed:
    """Makes the scene of a model whose values have their types already; `shapes` says where these come from."""
    file = None
    if path is not None:
        with stage("hash"):
            file = model_file(path, "read")
    name = path.name if path is not None else "the model"
    model = scene.Model(name, str(path or ""), file.sha256 if file is not None else "")
    with stage("columns"):
        numbering = Numbering(source, model)
    with stage("weights"):
        constants, notes = described([tensor for _, tensor in numbering.stored])
    model.constants = {
        number: one for (number, tensor), one in zip(numbering.stored, constants, strict=True) if tensor is not None
    }
    for value, number in numbering.values.items():
        if number in model.constants and value.metadata_props:
            model.constants[number].aliases = provenance.folded_from(value)
    with stage("layout"):
        rooms = furnished(numbering)
    model.facts = _facts(source, model, path, shapes)
    if not model.nodes.name:
        notes.append("the model has no nodes")
    return Viewed(source, model, numbering.nodes, numbering.values, rooms.aliases, [*notes, *rooms.notes], file)


def _facts(source: ir.Model, model: scene.Model, path: Path | None, shapes: str) -> list[tuple[str, str]]:
    constants = sum(1 for _ in walk.all_nodes(source)) - len(model.nodes.name)
    weights = sum(one.bytes for one in model.constants.values())
    producer = " ".join(text for text in (source.producer_name, source.producer_version) if text)
    rows = [
        ("nodes", f"{len(model.nodes.name):,}"),
        ("Constant nodes", f"{constants:,}, shown at the nodes that read them" if constants else ""),
        ("weights", size(weights)),
        ("file", size(path.stat().st_size) if path is not None else ""),
        *((f"opset {domain or 'ai.onnx'}", str(version)) for domain, version in source.opset_imports.items()),
        ("IR version", str(source.ir_version)),
        ("producer", producer),
        ("functions", ", ".join(map(function_name, source.functions.values()))),
        ("shapes", shapes),
        ("description", source.doc_string or source.graph.doc_string or ""),
        *((f"metadata {name}", text) for name, text in source.metadata_props.items()),
    ]
    return [(name, text[:2000]) for name, text in rows if text]
