"""Writes the weights of a model to a file that other programs read: `.safetensors` or `.npz`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.graph.files.array_files import free_key
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.reading.exact_text import dtype_name
from onnxsmith.graph.reading.weights import Held, held
from onnxsmith.viewer.inspection.tables import SMALLEST
from onnxsmith.viewer.inspection.weight_formats import holds, is_widened, write

_OTHER = {".npz": ".safetensors", ".safetensors": ".npz"}
_RESERVED = "__metadata__"
"""Is the key in the header of a safetensors file that is no tensor."""


@dataclass(frozen=True)
class WeightFile:
    """Notes what changed when the file was written: tensors that the file lacks, and tensors with another name or
    dtype."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def check_target(path: Path) -> None:
    """Checks the path of a file to write. Must be called before the model is read.

    Raises:
        OnnxsmithError: `save/no-folder`, `bundle/suffix`.
    """
    refuse_missing(path.absolute().parent)
    if path.suffix not in _OTHER or path.is_dir():
        raise problem(
            "bundle/suffix",
            "weights are written as .safetensors or .npz",
            where=str(path),
            fix=f"give a path as {path.stem}.safetensors",
        )


def write_weights(model: ir.Model, path: Path, where: str) -> WeightFile:
    """Writes all initializers, including those of branches, bodies and external data, and constants of 16 elements or
    more.

    Names are kept. If a name occurs in several graphs, the name of the graph is put before it: `If_3/then_branch/w`.
    Integers of 2 or 4 bits become integers of 8 bits. Tensors with a dtype that only the other format has are refused.
    Tensors with a dtype that no format has are left out and named.

    Raises:
        OnnxsmithError: `inspect/weights-missing`, `inspect/weights-dtype`, `save/failed`.
    """
    found = [item for item in held(model) if not (item.constant and item.tensor is not None and _small(item.tensor))]
    _refuse_missing(found, where)
    tensors = [(item, item.tensor) for item in found if item.tensor is not None]
    kept = [(item, tensor) for item, tensor in tensors if holds(path.suffix, tensor)]
    lost = [(item, tensor) for item, tensor in tensors if not holds(path.suffix, tensor)]
    if lost and all(holds(_OTHER[path.suffix], tensor) for _, tensor in tensors):
        raise OnnxsmithError(_without_dtype(lost, path, f"--weights {path.with_suffix(_OTHER[path.suffix])}"))
    names, renamed = _names([item for item, _ in kept])
    with disk_problems(path), folders.replacing(path) as file:
        try:
            write(file, dict(zip(names, (tensor for _, tensor in kept), strict=True)))
        except ValueError as error:
            raise problem(
                "save/failed",
                "the weights could not be read",
                where=where,
                why=str(error),
                fix="export the model again; nothing was written",
            ) from error
    notes = _notes(renamed, [item.name for item, tensor in kept if is_widened(tensor.dtype)], len(kept), path)
    return WeightFile(
        (_without_dtype(lost, path, "read them from the model: onnx_ir.load(PATH).graph.initializers[NAME]"),)
        if lost
        else (),
        notes,
    )


def _small(tensor: ir.TensorProtocol) -> bool:
    return tensor.size < SMALLEST


def _refuse_missing(found: Iterable[Held], where: str) -> None:
    missing = [item.name for item in found if item.missing]
    if missing:
        raise problem(
            "inspect/weights-missing",
            f"the values of {several(len(missing), 'tensor')} are missing, so no weights were written",
            where=f"{where}: {first_few(missing, 3)}",
            fix="give the path of the .onnx file, with its data files beside it",
        )


def _without_dtype(lost: Sequence[tuple[Held, ir.TensorProtocol]], path: Path, fix: str) -> Problem:
    dtypes = ", ".join(dict.fromkeys(dtype_name(tensor.dtype) for _, tensor in lost))
    return Problem(
        "inspect/weights-dtype",
        f"{path.suffix} has no place for {several(len(lost), 'tensor')} of {dtypes}",
        where=first_few([item.name for item, _ in lost], 3),
        why=f"a {path.suffix} file has no such dtype",
        fix=fix,
    )


def _names(items: Sequence[Held]) -> tuple[list[str], list[str]]:
    """Returns a unique key for each tensor, and the names that are not kept."""
    counts = Counter(item.name for item in items)
    used: set[str] = {_RESERVED, ""}
    keys, renamed = [], []
    for item in items:
        unique = counts[item.name] == 1 or not item.scope.path
        wish = item.name if unique else f"{item.scope.path}/{item.name}"
        key = free_key(wish, used)
        keys.append(key)
        renamed += [item.name] if key != item.name else []
    return keys, renamed


def _notes(renamed: Sequence[str], widened: Sequence[str], count: int, path: Path) -> tuple[str, ...]:
    texts = [f"{several(count, 'tensor')} in {path}"]
    if renamed:
        shown = first_few(renamed, 3)
        texts.append(f"{several(len(renamed), 'tensor')} got another name, because it is not unique: {shown}")
    if widened:
        texts.append(f"stored as integers of 8 bits: {first_few(widened, 3)}")
    return tuple(texts)
