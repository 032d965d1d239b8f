"""The file and its data files are not too large for a repository."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.words import pasted
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile


class FileSize(Check):
    """No file, and no data file of a model, has more bytes than `--max-size`."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        for path in (file.path, *file.data):
            size = path.stat().st_size
            if not file.most or size <= file.most:
                continue
            name = pasted(file.path)
            smaller = f"; or make the model smaller: `onnxsmith quantize {name} -o smaller.onnx --to float16`"
            yield Problem(
                "guard/too-large",
                f"the file has {size:,} bytes, but {file.most:,} are allowed",
                where=str(file.path) if path == file.path else f"{file.path}, data file {path.name}",
                why="a Git repository keeps every version of a file for ever, and GitHub refuses files above 100 MiB",
                fix=f"keep the file in Git LFS, and allow its size: --max-size {-(-size // 10**6)}MB"
                f"{smaller if file.kind == 'model' else ''}",
            )
