"""The data file of a baseline: a zip archive whose entries are named by the SHA-256 of their content.

Equal tensors are stored once. The entries are sorted and have no time, so that the same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from onnxsmith.base import user_files
from onnxsmith.base.folders import replacing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files import array_files


class Content:
    """The content of a data file by its SHA-256."""

    def __init__(self, held: dict[str, bytes] | None = None) -> None:
        self.held = held or {}

    def keep(self, _: str, data: bytes) -> str:
        """Stores bytes, and returns the name of their entry."""
        name = hashlib.sha256(data).hexdigest()
        self.held[name] = data
        return name

    def add(self, other: Content, names: Iterable[str]) -> None:
        """Takes over entries of another file."""
        self.held |= {name: other.held[name] for name in names}


def beside(path: Path) -> Path:
    """Returns the data file of a baseline: `baseline.zip` of `baseline.json`, `baseline.txt.zip` of `baseline.txt`."""
    return path.with_name(f"{path.stem if path.suffix == '.json' else path.name}.zip")


def write(path: Path, content: Content) -> None:
    """Writes the data file, complete or not at all. Raises OSError."""
    with replacing(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(content.held.items()):
            entry = zipfile.ZipInfo(name)  # of 1980, with the permissions below on every system
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, data)


def read(path: Path, names: set[str]) -> Content:
    """Reads the entries with these names.

    Raises:
        OnnxsmithError: `gate/baseline-data` if the file is missing or damaged, or an entry is missing or changed;
            `input/too-large` if this process has no memory for the entries.
    """
    held = {}
    try:
        with user_files.opened(path) as file, zipfile.ZipFile(file) as archive:
            lacking = names - set(archive.namelist())
            if lacking:
                raise _damaged(path, f"the file has no entry {min(lacking)}")
            entries = {name: archive.getinfo(name) for name in sorted(names)}
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
                raise _damaged(path, "an entry is compressed, but onnxsmith writes no compressed entries")
            array_files.refuse_large(path, {name: entry.file_size for name, entry in entries.items()})
            for name in entries:
                held[name] = archive.read(name)
                if hashlib.sha256(held[name]).hexdigest() != name:
                    raise _damaged(
                        path,
                        f"the content of the entry {name} has been changed: it does not match its name, which is "
                        "its SHA-256",
                    )
    except FileNotFoundError as error:
        raise _damaged(path, "there is no such file") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    return Content(held)


def _damaged(path: Path, why: str) -> OnnxsmithError:
    return problem(
        "gate/baseline-data",
        "the recorded inputs and outputs cannot be read",
        where=str(path),
        why=why,
        fix=f"restore {path.name} from the source of the baseline, because both files belong together; or remove "
        "the baseline and record the models again",
    )
