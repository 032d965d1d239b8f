"""Copies a model with its external data. The operating system copies the weights, without loading them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.graph.files.load import TEXT_SUFFIXES
from onnxsmith.graph.files.save import save_for_now
from onnxsmith.graph.structure import walk


def copy_model(source: object, model: ir.Model, target: OwnPath) -> tuple[str, ...]:
    """Writes the model to `target`, and returns its data files relative to the folder.

    A file is copied byte by byte; data files keep their names, because the model refers to them. The model is written
    anew if it is in memory or in text form, or if a data file would overwrite it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    path = Path(source) if isinstance(source, str | Path) else None
    data = _locations(model)
    clash = any(PurePosixPath(name).as_posix().lower() == target.name.lower() for name in data)
    if path is None or path.suffix in TEXT_SUFFIXES or clash:
        save_for_now(model, target)
        return tuple(sorted(file.name for file in target.parent.iterdir() if file != target))
    folders.copy(path, target)
    for name, file in sorted(data.items()):
        (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
        folders.copy(file, OwnPath(target.parent / name))
    return tuple(sorted(data))


def _locations(model: ir.Model) -> dict[str, Path]:
    """Returns the data files by their location in the model. `load` has checked that each file is inside the folder."""
    tensors = [tensor for tensor in walk.tensors(model) if isinstance(tensor, ir.ExternalTensor)]
    return {str(PurePosixPath(tensor.location)): Path(tensor.path) for tensor in tensors}
