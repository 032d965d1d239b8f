"""Writes a model so that a reader never finds half of one.

A model is written into a hidden folder beside its target, where it can be checked as the file it is going to be, and
moves into place by renaming. A full disk, an interrupt or a kill leaves what was there before. Unchanged weights in
external data go from file to file by the operating system's copy.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError

from onnxsmith import folders
from onnxsmith.model.files import external
from onnxsmith.model.files.external import EXTERNAL_FROM, in_memory
from onnxsmith.model.files.load import TEXT_SUFFIXES
from onnxsmith.model.files.tensors import tensors
from onnxsmith.model.graph import carried
from onnxsmith.model.graph.paths import as_text
from onnxsmith.model.graph.walk import initializer_tensors
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.system import disk

INLINE_LIMIT = 1_900_000_000
"""Bytes of weights above which they go to external data: one message ends at 2**31 - 1 bytes, nodes included."""


class Stage:
    """A model on its way to `target`: `write` it, check the file at `path`, then `commit`."""

    def __init__(self, target: Path, folder: Path, *, linked: bool = False, durable: bool = True) -> None:
        self.target = target
        self.folder = folder
        self.path = folder / target.name
        self._linked = linked
        self._durable = durable
        self._data = _free_data_name(target)
        self._written = False
        self._has_data = False
        self._stale: list[Path] = []

    def write(self, model: ir.Model, *, external_data: bool | None = None) -> None:
        """Writes `model` to `path`. It is not changed.

        External data is used when asked for; with None when the weights are over `INLINE_LIMIT` bytes, or when some
        of them lie in external data now.

        Raises:
            OnnxsmithError: `save/too-large` when one message cannot hold the model, `save/failed` when the disk is
                full or refuses.
        """
        outside = _wants_external(model) if external_data is None else external_data
        if outside and self._linked:
            raise problem(
                "save/failed",
                "the target is a link into another folder, and the model needs a data file beside it",
                where=str(self.target),
                why="readers look for the data file beside the link, not beside what it leads to",
                fix="give the path that the link leads to",
            )
        with disk_problems(self.target):
            whole = _moved_out(model, self._staged_data) if outside else in_memory(model)
            self.path.write_bytes(_serialise(whole, self.target))
            self._written = True

    def nbytes(self) -> int:
        """Bytes of what was written, data file included."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def commit(self) -> list[Path]:
        """Moves the written files into place and returns them, the model first.

        The data file moves before the model that refers to it, under a name that no file has: at every moment the
        target is the whole old model or the whole new one. The old model's own data file goes last.
        """
        return commit(self)

    def _prepare(self) -> None:
        assert self._written, "nothing was written"
        self._stale = [file for file in data_files(self.target) if not _is_needed(file, self.target)]
        self._has_data = self._staged_data.exists()
        for file in (self.path, self._staged_data) if self._has_data else (self.path,):
            if self._durable:
                disk.HERE.flush(file)

    def _place(self, *, keep: bool) -> list[Path]:
        """Moves the files; with `keep` the old model stays where `_take_back` finds it."""
        if keep and self.target.exists():
            _link(self.target, self._before)
        if self._has_data:
            if self._placed_data.exists():
                raise FileExistsError(
                    errno.EEXIST, "another writer made a file of that name meanwhile", self._placed_data
                )
            self._staged_data.rename(self._placed_data)
        self.path.replace(self.target)
        return [self.target, self._placed_data] if self._has_data else [self.target]

    def _take_back(self) -> None:
        """Makes the target what it was before `_place`, however far that came."""
        if not self.path.exists():
            if self._before.exists():
                self._before.replace(self.target)
            else:
                self.target.unlink(missing_ok=True)
        if self._has_data and not self._staged_data.exists():
            self._placed_data.unlink(missing_ok=True)

    @property
    def _staged_data(self) -> Path:
        return self.folder / self._data

    @property
    def _placed_data(self) -> Path:
        return self.target.parent / self._data

    @property
    def _before(self) -> Path:
        return self.folder / f"{self.target.name}.before"


def commit(*stages: Stage) -> list[Path]:
    """Moves the files of every stage into place, or of none where one cannot be; returns them in that order.

    The last model to move is the last one given, and until it has moved those before it are taken back.
    """
    *_, last = stages
    placed: list[Path] = []
    for stage in stages:
        with disk_problems(stage.target):
            stage._prepare()
    try:
        for stage in stages:
            with disk_problems(stage.target):
                placed += stage._place(keep=stage is not last)
    except BaseException:
        if last.path.exists():
            for stage in stages:
                stage._take_back()
        raise
    for stage in stages:
        _remove(stage._stale)
    return placed


@contextmanager
def staged(target: str | Path, *, durable: bool = True) -> Iterator[Stage]:
    """A stage for writing to `target`; whatever was not committed is gone when the block ends. What is not `durable`
    need not outlive the machine.

    Raises:
        OnnxsmithError: `save/no-folder` when the folder of `target` does not exist, `save/failed` when it cannot be
            written to.
    """
    path = Path(os.path.realpath(target))
    if path.suffix in TEXT_SUFFIXES:
        raise problem(
            "save/failed",
            f"a model is not written as text ({path.suffix})",
            where=str(path),
            fix="give a path that ends in .onnx; `onnxsmith inspect MODEL --text` prints the text",
        )
    if path.is_dir():
        raise problem("save/failed", "the target is a folder", where=str(path), fix="give the path of a file")
    if not path.parent.is_dir():
        raise problem(
            "save/no-folder",
            "the folder to write to does not exist",
            where=str(path.parent),
            fix=f"mkdir -p {path.parent}",
        )
    with contextlib.ExitStack() as stack:
        with disk_problems(path):
            folder = stack.enter_context(folders.beside(path))
        linked = path.parent != Path(os.path.realpath(Path(target).parent))
        yield Stage(path, folder, linked=linked, durable=durable)


def save(model: ir.Model, target: str | Path, *, external_data: bool | None = None) -> list[Path]:
    """Writes `model` to `target` atomically, unchecked; see `Stage.write` for `external_data` and the errors."""
    with staged(target) as stage:
        stage.write(model, external_data=external_data)
        return stage.commit()


def save_for_now(model: ir.Model, target: Path, *, external_data: bool | None = None) -> None:
    """As `save`, for a file that need not outlive the machine: nobody waits until the disk has it."""
    with staged(target, durable=False) as stage:
        stage.write(model, external_data=external_data)
        stage.commit()


def write_referring(model: ir.Model, path: Path) -> Path | None:
    """Writes the model without its external data, which stays where it is: in the folder that is returned.

    None, and nothing is written, where there is none, or it lies in several folders or is too small to matter, or the
    rest is too large for one file.
    """
    copy = in_memory(model, up_to=EXTERNAL_FROM)
    weights = list(initializer_tensors(copy))
    folders = {Path(weight.base_dir).absolute() for weight in weights if isinstance(weight, ir.ExternalTensor)}
    inline = sum(weight.nbytes for weight in weights if not isinstance(weight, ir.ExternalTensor))
    if len(folders) != 1 or inline > INLINE_LIMIT:
        return None
    with disk_problems(path):
        path.write_bytes(_serialise(copy, path))
    return folders.pop()


def _wants_external(model: ir.Model) -> bool:
    weights = list(initializer_tensors(model))
    return any(isinstance(w, ir.ExternalTensor) for w in weights) or sum(w.nbytes for w in weights) > INLINE_LIMIT


def _moved_out(model: ir.Model, data: Path) -> ir.Model:
    """A copy of `model` whose large initializers lie in the file `data`, which is written."""
    copy = in_memory(model, up_to=EXTERNAL_FROM)
    copy = model.clone() if copy is model else copy
    external.move_out(copy, data)
    return copy


def _serialise(model: ir.Model, target: Path) -> bytes:
    try:
        data: bytes = carried.to_proto(model).SerializeToString()
    except (ValueError, EncodeError) as error:
        raise problem(
            "save/too-large",
            "the model does not fit into one file",
            where=str(target),
            why=f"{error}; one message ends at {2**31 - 1:,} bytes",
            fix="write its weights as external data; large constants in attributes have to become initializers first",
        ) from error
    return data


def _remove(stale: list[Path]) -> None:
    """Removes the `stale` data files. Tensors that were to be read from them stay readable."""
    external.keep({os.path.realpath(file) for file in stale})
    for file in stale:
        with contextlib.suppress(OSError):  # the new model is in place; a leftover harms nobody
            file.unlink()


def _free_data_name(target: Path) -> str:
    name = as_text(target.name)
    names = (f"{name}.data" if n == 1 else f"{name}.{n}.data" for n in itertools.count(1))
    return next(name for name in names if not os.path.lexists(target.parent / name))


def data_files(target: Path) -> list[Path]:
    """Data files that the model now at `target` keeps under its own name, which nothing needs once it is replaced."""
    if not target.is_file():
        return []
    try:
        old = onnx.load(target, load_external_data=False)
    except Exception:  # noqa: BLE001 — what is there is no model; it has no data files
        return []
    own = re.compile(re.escape(as_text(target.name)) + r"(\.\d+)?\.data")
    locations = {entry.value for tensor in tensors(old) for entry in tensor.external_data if entry.key == "location"}
    return [target.parent / name for name in sorted(locations) if own.fullmatch(name)]


def _is_needed(data: Path, target: Path) -> bool:
    """Whether another model in the folder of `target` names the data file: a copy of it, say."""
    name = os.fsencode(data.name)
    for other in target.parent.glob("*.onnx"):
        with contextlib.suppress(OSError, ValueError):  # what cannot be read, or is empty, needs nothing
            if not other.samefile(target) and other.is_file() and _holds(other, name):
                return True
    return False


def _holds(file: Path, text: bytes) -> bool:
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0


def _link(file: Path, to: Path) -> None:
    """A second name for the file, or a copy where the disk has no such thing."""
    try:
        to.hardlink_to(file)
    except OSError:
        shutil.copy2(file, to)


def _is_full(target: Path) -> bool:
    """Whether the target's disk has no room left; numpy tells a short write without its cause."""
    return shutil.disk_usage(target.parent).free < 2**20


@contextmanager
def disk_problems(target: Path) -> Iterator[None]:
    """Makes what the disk refuses `save/failed`."""
    try:
        yield
    except OnnxsmithError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) or (error.errno is None and _is_full(target))
        raise problem(
            "save/failed",
            "the disk is full" if full else "the model could not be written",
            where=str(target),
            why=str(error),
            fix="make room and run it again; what was there before is unchanged"
            if full
            else "check the permissions of the folder; what was there before is unchanged",
        ) from error
