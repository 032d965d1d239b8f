"""Makes the scene of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.report.base import ModelFile
from onnxsmith.base.words import several, size
from onnxsmith.graph.model_identity import model_file
from onnxsmith.graph.reading.exact_text import elements, flat
from onnxsmith.graph.reading.scopes import function_name
from onnxsmith.graph.reading.statistics import statistics
from onnxsmith.graph.reading.weights import place, readable
from onnxsmith.graph.structure import provenance, sparse, walk
from onnxsmith.viewer import scene
from onnxsmith.viewer.numbering import Numbering
from onnxsmith.viewer.room_contents import furnished
from onnxsmith.viewer.scene import Constant, Figure, figure


@dataclass(eq=False)
class Viewed:
    """Holds a model with its scene. `nodes` and `values` are the numbers in the scene, and `aliases` are rooms by their
    paths. `file` has the hashes of the file; None if there is no file."""

    source: ir.Model
    scene: scene.Model
    nodes: dict[ir.Node, int]
    values: dict[ir.Value, int]
    aliases: dict[str, int]
    notes: list[str]
    file: ModelFile | None

    @property
    def constants(self) -> int:
        """Returns the number of Constant nodes, which are shown at the nodes that read them."""
        return _constants(self.source, self.scene)


def viewed(source: ir.Model, path: Path | None, shapes: str) -> Viewed:
    """Makes the scene of a model whose values have types. `shapes` says where the types come from."""
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


def _constants(source: ir.Model, model: scene.Model) -> int:
    return sum(1 for _ in walk.all_nodes(source)) - len(model.nodes.name)


def _facts(source: ir.Model, model: scene.Model, path: Path | None, shapes: str) -> list[tuple[str, str]]:
    constants = _constants(source, model)
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


# Describes stored tensors: statistics and a histogram, of as many of them as may be read.

MOST_BYTES = 64 * 2**20
"""Limits the bytes of weights that are read. A choice: half a second of work."""
_MOST_TENSORS = 1000
"""Limits the tensors that get statistics. A choice: statistics take 0.2 ms for each tensor, and nobody looks at more
tensors."""
_WHOLE = 16
"""Limits the elements of a tensor whose values are shown. A choice: one line."""
_BINS = 24
"""Counts the intervals of a histogram. A choice: the width of a panel."""
_FEWEST = 32
"""Counts the fewest elements of a tensor with a histogram. A choice."""


def described(tensors: Sequence[ir.TensorProtocol | None], limit: int = MOST_BYTES) -> tuple[list[Constant], list[str]]:
    """Describes tensors, the smallest first, until `limit` bytes were read. Also returns notes on the tensors that were
    not read."""
    found = [_unread(tensor) for tensor in tensors]
    order = sorted(range(len(tensors)), key=lambda at: (found[at].bytes, at))
    spent = counted = left = left_bytes = 0
    for at in order:
        tensor, one = tensors[at], found[at]
        if tensor is None or not readable(tensor):
            continue
        if tensor.size <= _WHOLE:
            one.text = f"[{', '.join(elements(tensor))}]" if tensor.shape.rank() else ", ".join(elements(tensor))
            one.figures = None
            continue
        if counted >= _MOST_TENSORS or spent + one.bytes > limit:
            left, left_bytes = left + 1, left_bytes + one.bytes
            continue
        counted, spent = counted + 1, spent + one.bytes
        _read(tensor, one)
    notes = []
    if left:
        notes.append(
            f"no statistics of {several(left, 'weight')} ({size(left_bytes)}), because the limit was reached: "
            f"{size(spent)} of other weights were read"
        )
    missing = sum(tensor is None or not readable(tensor) for tensor in tensors)
    if missing:
        notes.append(f"the values of {several(missing, 'weight')} are missing")
    return found, notes


def _unread(tensor: ir.TensorProtocol | None) -> Constant:
    where = place(tensor)
    found = Constant(tensor.nbytes if tensor is not None else 0, "" if where == "inline" else where, None, [], "")
    held = sparse.stored_of(tensor)
    if tensor is not None and held is not None:
        count, found.bytes = held
        found.form = f"sparse, {count:,} of {several(tensor.size, 'value')}"
    return found


def _read(tensor: ir.TensorProtocol, one: Constant) -> None:
    try:
        known = statistics(tensor)
        if known is None:
            return
        one.figures = _figures(tensor, known)
        if tensor.size >= _FEWEST and known.min is not None and known.max is not None:
            one.histogram = _histogram(tensor, known.min, known.max)
    except (OSError, ValueError) as error:
        one.file = f"{one.file} unreadable: {error}".strip()


def _figures(tensor: ir.TensorProtocol, known: object) -> dict[str, Figure]:
    values = vars(known)
    found = {name: figure(values[name]) for name in ("min", "max", "mean", "std") if values[name] is not None}
    found["zeros"] = values["zero"] / max(1, tensor.size)
    found["nan"] = values["nan"]
    if values["inf"]:
        found["inf"] = values["inf"]
    return found


def _histogram(tensor: ir.TensorProtocol, low: float, high: float) -> list[int]:
    """Counts the finite elements in equal intervals. The intervals are computed in float64, in which the range of any
    dtype is finite."""
    span = float(high) - float(low)
    if not (tensor.dtype.is_integer() or tensor.dtype.is_floating_point()) or not 0 < span < np.inf:
        return []
    array = flat(tensor).astype(np.float64)
    array = array[np.isfinite(array)]
    array -= float(low)
    array *= _BINS / span
    counts = np.bincount(np.minimum(array.astype(np.int64), _BINS - 1), minlength=_BINS)
    return [int(count) for count in counts]
