"""Writes and reads arrays in an `.npz`, one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onnxsmith.base.folders import OwnPath
from onnxsmith.graph.files import array_files
from onnxsmith.runtimes.base import Array

ABOUT = array_files.INDEX


class Writer:
    """Writes an `.npz` file."""

    def __init__(self, file: OwnPath) -> None:
        self._zip = array_files.new_npz(file)

    def add(self, key: str, array: Array) -> None:
        """Adds an array. If numpy lacks the dtype, the array's bits are stored as unsigned integers."""
        plain = array.view(f"u{array.dtype.itemsize}") if array.dtype.isbuiltin != 1 else array
        array_files.add_to_npz(self._zip, key, plain)

    def finish(self, about: str) -> None:
        """Adds the text and closes the file."""
        self.add(ABOUT, np.frombuffer(about.encode(), np.uint8))
        self._zip.close()

    def close(self) -> None:
        """Closes the file, complete or not."""
        self._zip.close()


class Reader:
    """Reads an `.npz` file without pickled objects."""

    def __init__(self, path: Path) -> None:
        self._file = array_files.ArrayFile(path)
        self.keys = {*self._file.names} - {ABOUT}

    def about(self) -> str:
        """Returns the JSON text."""
        return bytes(self._file.array(ABOUT)).decode()

    def array(self, key: str) -> Array:
        """Returns the array of this key."""
        return self._file.array(key)
