"""Reads a file once for all checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.gate.guarding import pickles
from onnxsmith.graph.files.load import TEXT_SUFFIXES, load, load_broken
from onnxsmith.graph.files.save import named_data

_MODELS = {".onnx", *TEXT_SUFFIXES}


@dataclass(frozen=True)
class GuardedFile:
    """A file with what was read from it.

    `kind` says what the bytes are: `model`, `pickle`, `safetensors` or `other`. `model` is None for other kinds, and if
    the file cannot be read; then `error` says why. `data` are the data files of a model that are there. `most` is the
    limit of the bytes of each file, 0 for none. `is_simplified` says that a model has to be simplified.
    """

    path: Path
    kind: str
    bytes: int
    model: ir.Model | None = None
    error: Problem | None = None
    data: tuple[Path, ...] = ()
    most: int = 0
    is_simplified: bool = False


def read(path: Path, *, most: int, is_simplified: bool) -> GuardedFile:
    """Reads a file that exists. Of a model whose data is refused, the graph is read all the same. A pickle is a pickle,
    also if its name is that of a model."""
    size, kind = path.stat().st_size, pickles.kind(path)
    if kind == "pickle" or path.suffix not in _MODELS:
        return GuardedFile(path, kind, size, most=most)
    model, error = None, None
    try:
        model = load(path)
    except OnnxsmithError as refused:
        error = refused.problem
        if error.id.startswith("model/external-"):
            model = _without_data(path)
    data = tuple(found for name in named_data(path) if (found := path.parent / name).is_file())
    return GuardedFile(path, "model", size, model, error, data, most, is_simplified)


def _without_data(path: Path) -> ir.Model | None:
    try:
        return load_broken(path)
    except OnnxsmithError:
        return None
