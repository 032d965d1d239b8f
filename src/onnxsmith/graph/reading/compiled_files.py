"""Names the files beside a model that other programs compiled from models: engines, caches, libraries. They are never
opened."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from onnxsmith.base.words import first_few, several, size

_KINDS = {
    ".blob": "OpenVINO blob",
    ".cache": "timing cache of TensorRT",
    ".dll": "library",
    ".dlc": "QNN model",
    ".dylib": "library",
    ".engine": "TensorRT engine",
    ".hef": "Hailo model",
    ".mlmodelc": "Core ML model",
    ".om": "Ascend model",
    ".ort": "onnxruntime's own format",
    ".plan": "TensorRT engine",
    ".profile": "shapes of a TensorRT engine",
    ".rknn": "RKNN model",
    ".so": "library",
    ".timing": "timing cache of TensorRT",
    ".trt": "TensorRT engine",
    ".vmfb": "IREE module",
    ".xmodel": "Vitis AI model",
}
"""Maps the ends of names to what such a file is. The ends are those that the tools write by default."""
_SEEN = 2000
"""Limits the files of the folder that are looked at. A choice: a folder of a model has fewer."""
_SHOWN = 20
"""Limits the files that the note names. A choice."""


def note_on(path: Path, own: Collection[str] = ()) -> str:
    """Returns a note on the compiled files in the folder of a model, and which of them are older than the model; "" if
    there are none. `own` are the names of files that the model itself reads."""
    try:
        written = path.stat().st_mtime_ns
        found = sorted(_found(path, written, own))
    except OSError:
        return ""
    if not found:
        return ""
    count = several(len(found), "compiled file")
    return f"not read: {count} of other programs beside the model: {first_few(found, _SHOWN)}"


def _found(path: Path, written: int, own: Collection[str]) -> Iterator[str]:
    with os.scandir(path.absolute().parent) as entries:
        for entry in islice(entries, _SEEN):
            kind = _KINDS.get(Path(entry.name).suffix.lower())
            if kind is None or entry.name == path.name or entry.name in own:
                continue
            about = entry.stat(follow_symlinks=False)
            told = f", {size(about.st_size)}" if entry.is_file(follow_symlinks=False) else ""
            old = ", older than the model" if about.st_mtime_ns < written else ""
            yield f"{entry.name} ({kind}{told}{old})"
