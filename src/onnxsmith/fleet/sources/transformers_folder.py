"""Folders of the transformers library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.fleet.sources.base import Model, Source


class TransformersFolder(Source):
    """A folder with `config.json`, and weights, a tokenizer and a processor beside it. All of its files belong to the
    model. The task is an option of export: `export = "--task text-classification"`."""

    rank = 1

    def takes(self, text: str, folder: Path) -> bool:
        return (folder / text / "config.json").is_file()

    def models(self, text: str, folder: Path) -> Sequence[Model]:
        start = folder / text
        names = sorted(path.relative_to(start) for path in start.rglob("*") if path.is_file())
        files = tuple(str(Path(text) / name) for name in names if not any(part.startswith(".") for part in name.parts))
        name = Path(text).as_posix()
        return [Model(name, name, is_file=False, options=("--transformers",), files=files)]
