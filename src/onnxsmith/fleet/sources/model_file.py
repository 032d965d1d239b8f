"""ONNX files by path or pattern."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from onnxsmith.fleet.sources.base import Model, Source


class ModelFile(Source):
    """`models/a.onnx`, `models/**/*.onnx`. Every text that no other kind takes is a path. A Python file alone is no
    model: a factory is a function in it."""

    rank = 9

    def takes(self, text: str, folder: Path) -> bool:
        return True

    def models(self, text: str, folder: Path) -> Sequence[Model]:
        if text.endswith(".py"):
            return []
        if (folder / text).is_file():
            return [self._model(text)]  # also a name with a bracket, which would be a pattern
        names = sorted(glob.glob(text, root_dir=folder, recursive=True))  # noqa: PTH207 — takes absolute patterns too
        return [self._model(name) for name in names if (folder / name).is_file()]

    def _model(self, name: str) -> Model:
        return Model(Path(name).as_posix(), name, is_file=True, files=(name,))
