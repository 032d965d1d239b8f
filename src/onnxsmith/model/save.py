"""Writes a model so that a reader never finds half of one.

A model is written into a hidden folder beside its target, where it can be checked as the file it is going to be, and
moves into place by renaming. A full disk, an interrupt or a kill leaves what was there before. Unchanged weights in
external data go from file to file by the operating system's copy.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir

from onnxsmith.model import external
from onnxsmith.problem import OnnxsmithError, problem

INLINE_LIMIT = 1_900_000_000
"""Bytes of weights above which they go to external data: one message ends at 2**31 − 1 bytes, nodes included."""

_EXTERNAL_FROM = 1024
"""Tensors up to this many bytes stay in the model file, so that shapes and scalars need no second read."""


class Stage:
    """A model on its way to `target`: `write` it, check the file at `path`, then `commit`."""

    def __init__(self, target: Path, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.path = folder / target.name
        self._data = _free_data_name(target)
        self._written = False

    def write(self, model: ir.Model, *, external_data: bool | None = None) -> None:
        """Writes `model` to `path`. It is not changed.

        External data is used when asked for; with None when the weights are over `INLINE_LIMIT` bytes, or when some
        of them lie in external data now.

        Raises:
            OnnxsmithError: `save/too-large` when one message cannot hold the model, `save/failed` when the disk is
                full or refuses.
        """
        with _disk_problems(self.target):
            if _wants_external(model) if external_data is None else external_data:
                ir.save(model, self.path, external_data=self._data, size_threshold_bytes=_EXTERNAL_FROM)
            else:
                self.path.write_bytes(_serialise(model, self.target))
            self._written = True

    def commit(self) -> list[Path]:
        """Moves the written files into place and returns them, the model first.

        The data file moves before the model that refers to it, under a name that no file has: at every moment the
        target is the whole old model or the whole new one.
        """
        assert self._written, "nothing was written"
        moved = [self.target]
        with _disk_problems(self.target):
            stale = _data_of(self.target)
            data = self.folder / self._data
            for file in (self.path, data):
                if file.exists():
                    _flush(file)
            if data.exists():
                data.replace(self.target.parent / self._data)
                moved.append(self.target.parent / self._data)
            self.path.replace(self.target)
            for file in stale:
                file.unlink(missing_ok=True)
        return moved


@contextmanager
def staged(target: str | Path) -> Iterator[Stage]:
    """A stage for writing to `target`; whatever was not committed is gone when the block ends.

    Raises:
        OnnxsmithError: `save/no-folder` when the folder of `target` does not exist, `save/failed` when it cannot be
            written to.
    """
    path = Path(os.path.realpath(target))
    if path.is_dir():
        raise problem("save/failed", "the target is a folder", where=str(path), fix="give the path of a file")
    if not path.parent.is_dir():
        raise problem(
            "save/no-folder",
            "the folder to write to does not exist",
            where=str(path.parent),
            fix=f"mkdir -p {path.parent}",
        )
    with _disk_problems(path):
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield Stage(path, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save(model: ir.Model, target: str | Path, *, external_data: bool | None = None) -> list[Path]:
    """Writes `model` to `target` atomically, unchecked; see `Stage.write` for `external_data` and the errors."""
    with staged(target) as stage:
        stage.write(model, external_data=external_data)
        return stage.commit()


def _wants_external(model: ir.Model) -> bool:
    weights = [
        value.const_value
        for graph in model.graphs()
        for value in graph.initializers.values()
        if value.const_value is not None
    ]
    return any(isinstance(w, ir.ExternalTensor) for w in weights) or sum(w.nbytes for w in weights) > INLINE_LIMIT


def _serialise(model: ir.Model, target: Path) -> bytes:
    inline = model
    if any(isinstance(v.const_value, ir.ExternalTensor) for g in model.graphs() for v in g.initializers.values()):
        inline = ir.external_data.load_to_model(model.clone())
    try:
        return ir.to_proto(inline).SerializeToString()
    except ValueError as error:
        raise problem(
            "save/too-large",
            "the model does not fit into one file",
            where=str(target),
            why=str(error),
            fix="write its weights as external data",
        ) from error


def _free_data_name(target: Path) -> str:
    names = (f"{target.name}.data" if n == 1 else f"{target.name}.{n}.data" for n in range(1, 1000))
    return next(name for name in names if not (target.parent / name).exists())


def _data_of(target: Path) -> list[Path]:
    """Data files that the model now at `target` keeps under its own name, which nothing needs once it is replaced."""
    if not target.is_file():
        return []
    try:
        old = onnx.load(target, load_external_data=False)
    except Exception:  # noqa: BLE001 — what is there is no model; it has no data files
        return []
    own = re.compile(re.escape(target.name) + r"(\.\d+)?\.data")
    locations = {
        entry.value for tensor in external.tensors(old) for entry in tensor.external_data if entry.key == "location"
    }
    return [target.parent / name for name in sorted(locations) if own.fullmatch(name)]


def _flush(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


@contextmanager
def _disk_problems(target: Path) -> Iterator[None]:
    try:
        yield
    except OnnxsmithError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise problem(
            "save/failed",
            "the disk is full" if full else "the model could not be written",
            where=str(target),
            why=str(error),
            fix="make room and run it again; what was there before is unchanged"
            if full
            else "check the permissions of the folder; what was there before is unchanged",
        ) from error
