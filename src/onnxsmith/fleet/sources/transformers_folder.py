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
        files = sorted(path for path in (folder / text).rglob("*") if path.is_file() and "/." not in path.as_posix())
        name = Path(text).as_posix()
        relative = tuple(str(path.relative_to(folder)) for path in files)
        return [Model(name, name, is_file=False, options=("--transformers",), files=relative)]
