"""Writes a model atomically: a reader finds the whole old model or the whole new model.

A model is written into a hidden folder beside its target. There the finished file is checked. Then a rename moves it
into place. After a full disk, an interrupt or a kill, the old model is still there.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError

from onnxsmith.base import devices, folders
from onnxsmith.base.limits import no_folder, refuse_missing, writing_refused
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import disk, moving
from onnxsmith.base.words import pasted
from onnxsmith.graph.files import external, noted
from onnxsmith.graph.files.external import EXTERNAL_FROM, in_memory
from onnxsmith.graph.files.load import TEXT_SUFFIXES
from onnxsmith.graph.files.tensor_validation import tensors
from onnxsmith.graph.structure import body_names, carried_fields
from onnxsmith.graph.structure.file_paths import as_text, is_possible
from onnxsmith.graph.structure.walk import initializer_tensors

INLINE_LIMIT = 1_900_000_000
"""Limits the bytes of weights that stay in the model file; more become external data. A choice below the 2**31 - 1
bytes of a message, because nodes and names need room, too."""


class Stage:
    """A model that is being written to `target`: `write` it, check the file at `path`, then `commit`."""

    def __init__(self, target: Path, folder: Path, *, linked: bool, durable: bool, device: bool = False) -> None:
        self.target = target
        self._device = device
        self.folder = folder
        self.path = folder / target.name
        self._linked = linked
        self._durable = durable
        self._data = _free_data_name(target)
        self._written = False
        self._has_data = False
        self._stale: list[Path] = []
        self._renamed: tuple[str, ...] = ()

    def write(self, model: ir.Model, *, external_data: bool | None = None) -> None:
        """Writes `model` to `path`, without changing it. Tensors in branches and bodies that hide an outer tensor get
        names of their own (`body_names.py`), unless the file is temporary: a check asks about the model as it is.

        `external_data` says whether weights go to a data file. None means: only if the weights are over `INLINE_LIMIT`
        bytes, or some of them are external data now.

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
                why="readers look for the data file beside the link, not beside the linked file",
                fix=f"give the path of the linked file: {pasted(self.target)}",
            )
        if outside and self._device:
            raise problem(
                "save/failed",
                "the target is no file, and the model needs a data file beside it",
                where=str(self.target),
                fix="give the path of a file",
            )
        if self._durable:
            model, self._renamed = body_names.renamed(model)
        with disk_problems(self.target):
            whole = _moved_out(model, self._staged_data) if outside else in_memory(model)
            self.path.write_bytes(_serialise(whole, self.target))
            self._written = True

    def nbytes(self) -> int:
        """Returns the bytes of the written files, data file included."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def commit(self) -> list[Path]:
        """Moves the written files into place and returns them, the model first.

        The data file moves first, under a new name, and then the model. So the target is the whole old model or the
        whole new model at every moment. The data file of the old model is removed last.
        """
        return commit(self)

    def _prepare(self) -> None:
        assert self._written, "nothing was written"
        noted.here().renamed.update(dict.fromkeys(self._renamed))
        self._stale = [file for file in data_files(self.target) if not _is_needed(file, self.target)]
        self._has_data = os.path.exists(self._staged_data)  # noqa: PTH110 — the name may be too long for a file
        for file in (self.path, self._staged_data) if self._has_data else (self.path,):
            if self._durable and not self._device:
                disk.HERE.flush(file)

    def _place(self, *, keep: bool) -> list[Path]:
        """Moves the files into place. With `keep`, a link to the old model stays for `_take_back`. A device or a pipe
        gets the bytes: a rename would put a file in its place."""
        if self._device:
            devices.write(self.path, self.target)
            return [self.target]
        if keep and self.target.exists():
            _link(self.target, self._before)
        if self._has_data or self._stale:
            folders.note(self.folder, self.target, [self._staged_data] if self._has_data else [], self._stale)
        if self._has_data:
            if self._placed_data.exists():
                raise FileExistsError(
                    errno.EEXIST, "another process created a file of that name meanwhile", self._placed_data
                )
            moving.HERE.move(self._staged_data, self._placed_data)
        moving.HERE.move(self.path, self.target)
        return [self.target, self._placed_data] if self._has_data else [self.target]

    def _take_back(self) -> None:
        """Undoes `_place`, even if it was interrupted."""
        if not self.path.exists():  # the rename happened
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
        return self.folder / ".before"


def commit(*stages: Stage) -> list[Path]:
    """Moves the files of all stages into place, or none of them if one fails; returns the files in order of the stages.

    The last stage moves last. If an earlier step fails, the stages that moved before it are undone.
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
    """Makes a stage for writing to `target`. Removes the written files if the block ends without a commit. If not
    `durable`, does not flush the files to disk: they may be lost when the machine crashes.

    Raises:
        OnnxsmithError: `save/no-folder` when the folder of `target` does not exist, `save/failed` when it cannot be
            written to, `save/not-a-file` for a device or a pipe that takes no output.
    """
    devices.refuse(target)
    device = devices.is_stream(Path(target))
    path = Path(target) if device else Path(os.path.realpath(target))  # /dev/stdout leads to a path that no call opens
    if path.suffix in TEXT_SUFFIXES:
        raise problem(
            "save/failed",
            f"a model is not written as text ({path.suffix})",
            where=str(path),
            fix=f"write -o {pasted(Path(target).with_suffix('.onnx'))}; `onnxsmith inspect --text` prints "
            "a model as text",
        )
    if path.is_dir():
        fix = f"give the path of a file in it, such as {pasted(Path(target) / 'model.onnx')}"
        raise problem("save/failed", "the target is a folder", where=str(path), fix=fix)
    refuse_missing(path.parent)
    with contextlib.ExitStack() as stack:
        with disk_problems(path):
            folder = stack.enter_context(folders.aside(path))
        linked = not device and path.parent != Path(os.path.realpath(Path(target).parent))
        yield Stage(path, folder, linked=linked, durable=durable, device=device)


def save(model: ir.Model, target: str | Path, *, external_data: bool | None = None) -> list[Path]:
    """Writes `model` to `target` atomically, unchecked; see `Stage.write` for `external_data` and the errors."""
    with staged(target) as stage:
        stage.write(model, external_data=external_data)
        return stage.commit()


def save_for_now(model: ir.Model, target: Path, *, external_data: bool | None = None) -> None:
    """Writes a temporary file like `save`, but does not wait until the disk has stored it."""
    with staged(target, durable=False) as stage:
        stage.write(model, external_data=external_data)
        stage.commit()


def write_referring(model: ir.Model, path: Path) -> Path | None:
    """Writes the model without its external data, which stays in its folder; returns that folder.

    Writes nothing and returns None if the model has no large external data, if the data lies in several folders, or if
    the other weights are too large for one file.
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


def as_read(model: ir.Model, external_data: bool | None) -> bool | None:
    """Returns `external_data`. If it is None, returns True if some weights of `model`, as it was read, are external
    data: a later change may put all weights into memory."""
    return True if external_data is None and _has_external(model) else external_data


def _has_external(model: ir.Model) -> bool:
    return any(isinstance(weight, ir.ExternalTensor) for weight in initializer_tensors(model))


def _wants_external(model: ir.Model) -> bool:
    return _has_external(model) or sum(weight.nbytes for weight in initializer_tensors(model)) > INLINE_LIMIT


def _moved_out(model: ir.Model, data: Path) -> ir.Model:
    """Returns a copy of `model` whose large initializers are in the file `data`, and writes that file."""
    copy = in_memory(model, up_to=EXTERNAL_FROM)
    copy = model.clone() if copy is model else copy
    external.move_out(copy, data)
    return copy


def _serialise(model: ir.Model, target: Path) -> bytes:
    try:
        data: bytes = carried_fields.to_proto(model).SerializeToString()
    except (ValueError, EncodeError) as error:
        raise problem(
            "save/too-large",
            "the model does not fit into one file",
            where=str(target),
            why=f"{error}; a protocol buffer message has at most {2**31 - 1:,} bytes",
            fix="write the weights as external data; first convert large constants in attributes to initializers",
        ) from error
    return data


def _remove(stale: list[Path]) -> None:
    """Removes the `stale` data files. Tensors that read them stay readable."""
    external.keep({os.path.realpath(file) for file in stale})
    for file in stale:
        with contextlib.suppress(OSError):  # the new model is in place, so a leftover does no harm
            file.unlink()


def _free_data_name(target: Path) -> str:
    name = as_text(target.name)
    names = (f"{name}.data" if n == 1 else f"{name}.{n}.data" for n in itertools.count(1))
    return next(name for name in names if not os.path.lexists(target.parent / name))


def data_files(target: Path) -> list[Path]:
    """Returns the data files that are named after the model at `target`. Replacing the model removes them."""
    own = re.compile(re.escape(as_text(target.name)) + r"(\.\d+)?\.data")
    return [target.parent / name for name in _locations(target) if own.fullmatch(name)]


def left_behind(target: Path) -> list[Path]:
    """Returns the data files that would be unused once the model at `target` is replaced. Their names are not
    onnxsmith's, so another program made them, and they are not removed."""
    target = Path(os.path.realpath(target))
    own = data_files(target)
    files = [target.parent / name for name in _locations(target)]
    return [file for file in files if file not in own and file.is_file() and not _is_needed(file, target)]


def named_data(target: Path) -> list[str]:
    """Returns the names of the data files that the model at `target` reads, in order, without links out of its
    folder."""
    folder = Path(os.path.realpath(target.parent))
    return [name for name in _locations(target) if Path(os.path.realpath(folder / name)).is_relative_to(folder)]


def _locations(target: Path) -> list[str]:
    """Returns the names of the data files of the model at `target`, without names that no file can have: loading
    refuses them. The message is not parsed if the model has no data files, as most."""
    if not target.is_file():
        return []
    try:
        if not folders.holds(target, b"location"):  # the key under which a tensor names its file
            return []
        old = onnx.load(target, load_external_data=False)
    except Exception:  # noqa: BLE001 — the file is not a model, so it has no data files
        return []
    named = {entry.value for tensor in tensors(old) for entry in tensor.external_data if entry.key == "location"}
    # protobuf returns a name that is not UTF-8 as bytes
    return sorted(name for name in named if isinstance(name, str) and is_possible(target.parent / name))


def _is_needed(data: Path, target: Path) -> bool:
    """Whether another model in the folder of `target` reads the data file, for example a copy of the old model."""
    others = [other for other in target.parent.glob("*.onnx") if os.path.realpath(other) != str(target)]
    return folders.is_named(data, others)


def _link(file: Path, to: Path) -> None:
    """Makes a hard link to the file, or a copy if the file system has no hard links."""
    try:
        to.hardlink_to(file)
    except OSError:
        shutil.copy2(file, to)


def _is_full(target: Path) -> bool:
    """Whether the target's disk is full. Needed because numpy reports a short write without an error number."""
    return shutil.disk_usage(target.parent).free < 2**20  # 1 MiB: some file systems reserve a few blocks


@contextmanager
def disk_problems(target: Path, what: str = "the model could not be written") -> Iterator[None]:
    """Turns errors of the disk into `save/failed`, and a missing folder into `save/no-folder`. `what` says what could
    not be written."""
    try:
        yield
    except OnnxsmithError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) or (error.errno is None and _is_full(target))
        if full:
            raise problem(
                "save/failed",
                "the disk is full",
                where=str(target),
                why=str(error),
                fix="free some space and run the command again; the old file is unchanged",
            ) from error
        raise unwritten(target, error, what) from error


def unwritten(target: Path, error: OSError, what: str) -> OnnxsmithError:
    """Returns the problem of a file or folder that the operating system refused to write."""
    folder = target.absolute().parent
    if error.errno != errno.ENAMETOOLONG and not folder.exists():
        return no_folder(folder)
    why, fix = writing_refused(target, error)
    return problem("save/failed", what, where=str(target), why=why, fix=fix)
