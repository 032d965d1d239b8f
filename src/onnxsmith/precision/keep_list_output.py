"""Writes a keep-list, and the mixed model beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base import devices
from onnxsmith.base.folders import aside, replacing
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.parts.written_files import written as files_written
from onnxsmith.graph.files.load import TEXT_SUFFIXES, Source
from onnxsmith.graph.files.save import staged, unwritten
from onnxsmith.graph.structure import walk
from onnxsmith.precision import keep_list as keeping
from onnxsmith.runtimes._lenient import checked as checked_model


def checked(path: Path, *, streams: bool = True) -> Path:
    """Checks that a file can be written, and returns its path. `streams` is as in `devices.refuse`."""
    if path.is_dir():
        raise problem(
            "save/failed",
            "the target is a folder",
            where=str(path),
            fix=f"give the path of a file in it: {path / 'keep.txt'}",
        )
    devices.refuse(path, streams=streams)
    refuse_missing(path.absolute().parent)
    try:
        with aside(path):
            return path
    except OSError as error:
        raise unwritten(path, error, "the file could not be written") from error


Sizes = tuple[int | None, int | None]


@dataclass(frozen=True)
class Delivery:
    """The files to write: the list to `keep`, the mixed model to `mixed`; None for no file. The mixed model was made
    from `source`."""

    keep: Path | None
    mixed: str | Path | None
    source: Source

    def write(self, names: Sequence[str], to: str, model: ir.Model, before: ir.Model) -> tuple[Written, Sizes]:
        """Writes the model and the list. Returns the files, and the model's size in bytes before and after.

        Raises:
            OnnxsmithError: `save/…`, or `model/invalid` if the mixed model is not valid.
        """
        files: list[Path] = []
        sizes: Sizes = (None, None)
        with with_keep(self.keep, names, to) as lists:
            if self.mixed is not None:
                old = file_bytes(Path(self.source), before) if isinstance(self.source, str | Path) else None
                with staged(self.mixed) as stage:
                    stage.write(model)
                    checked_model(model, where="the mixed model", file=stage.path)
                    sizes = (old, stage.nbytes())
                    files += stage.commit()
        files += lists
        return files_written(files) if files else Written({}, "no output was asked for"), sizes


def with_keep(
    path: Path | None, entries: Sequence[str], to: str, *, layers: bool = False
) -> AbstractContextManager[list[Path]]:
    """Writes a keep-list together with the model that the block commits, as `with_text` does. `layers` is as in
    `keep_list.text`."""
    content = "" if path is None else keeping.text(entries, to, as_json=path.suffix == ".json", layers=layers)
    return with_text(path, content)


@contextmanager
def with_text(path: Path | None, content: str) -> Iterator[list[Path]]:
    """Writes a text to a temporary file before the block, which commits a model, and moves it into place after the
    block. If the text cannot be written, the block does not run; if the block fails, the old text stays. Yields a list
    with the path, or an empty list if `path` is None.

    Raises:
        OnnxsmithError: `save/failed`.
    """
    if path is None:
        yield []
        return
    with ExitStack() as stack:
        with _list_problems(path):
            stack.enter_context(replacing(path)).write_text(content, encoding="utf-8")
        yield [path]
        with _list_problems(path):
            stack.close()  # moves the file into place


@contextmanager
def _list_problems(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritten(path, error, "the file could not be written") from error


def file_bytes(file: Path, model: ir.Model) -> int | None:
    """Returns the bytes of a model's file and its external data; None if `file` is no file, or has the model as
    text."""
    if not file.is_file() or file.suffix in TEXT_SUFFIXES:
        return None
    outside = (tensor.nbytes for tensor in walk.tensors(model) if isinstance(tensor, ir.ExternalTensor))
    return file.stat().st_size + sum(outside)
