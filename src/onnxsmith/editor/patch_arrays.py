"""Stores the arrays of a patch file: small arrays in its text, large arrays in `.npy` files beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import problem
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.operators import constant_tensors

_LARGEST = 256
"""Limits the elements of an array in the text of a patch file. A choice: a file that a person can review."""


def loaded(value: Any, folder: Path) -> Any:
    """Turns `{ file = "bias.npy" }` and `{ array = [1, 2], dtype = "float32" }` into arrays, also inside lists and
    tables. Relative paths start at `folder`. For a dtype that numpy lacks, the table has the key `dtype` beside `file`.

    Raises:
        OnnxsmithError: `edit/patch-file` if a file cannot be read.
    """
    if isinstance(value, dict) and set(value) in ({"file"}, {"file", "dtype"}) and isinstance(value["file"], str):
        array = _from_file(folder / value["file"])
        return array.view(_dtype(value["dtype"])) if "dtype" in value else array
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], _dtype(value["dtype"]))
    if isinstance(value, dict):
        return {key: loaded(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [loaded(one, folder) for one in value]
    return value


def _from_file(path: Path) -> np.ndarray[Any, Any]:
    why = "it is no .npy file"
    try:
        array = np.load(path, allow_pickle=False)
        if isinstance(array, np.ndarray):
            return array
    except (OSError, ValueError, EOFError) as error:
        why = str(error)
    raise problem(
        "edit/patch-file", "an array cannot be read", where=str(path), why=why, fix="write it with numpy.save"
    )


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        return ir.DataType[name.upper()].numpy()


@dataclass
class Arrays:
    """Collects the arrays of a patch file that is being recorded. `files` maps file names to the large arrays."""

    stem: str
    files: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def said(self, array: np.ndarray[Any, Any], where: str) -> Mapping[str, Any]:
        """Returns the table by which the patch file names an array. `where` becomes a part of its file's name.

        Raises:
            OnnxsmithError: `edit/not-recorded` for an array of objects other than texts.
        """
        texts = array.dtype.kind in "OSU"
        if texts and not all(isinstance(one, str) for one in array.ravel().tolist()):
            raise problem(
                "edit/not-recorded",
                f"a patch file cannot express an array of {array.dtype.name}",
                where=where,
                why="it holds texts and numbers",
                fix="give an array of numbers or of texts, or edit without record=",
            )
        if array.size <= _LARGEST:
            return {"array": array.tolist(), "dtype": "object" if texts else array.dtype.name}
        name = f"{self.stem}.{where}.npy"
        number = 1
        while name in self.files:
            number += 1
            name = f"{self.stem}.{where}_{number}.npy"
        self.files[name] = array.astype(str) if texts else _in_numpy(array).copy()
        return {"file": name, "dtype": array.dtype.name} if array.dtype.kind == "V" else {"file": name}


def _in_numpy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the array, or its bits if numpy itself lacks the dtype: bfloat16, float8."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}")) if array.dtype.kind == "V" else array


def plain_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Returns the numpy array of an array, a numpy scalar or a tensor; None for any other value."""
    if isinstance(value, ir.TensorProtocol):
        return value.numpy()
    return np.asarray(value) if constant_tensors.is_array(value) or isinstance(value, np.generic) else None


@contextmanager
def together(patch: Path, text: str, files: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[Callable[[], None]]:
    """Writes a patch file and its arrays into a hidden folder. Yields a function that moves them into place.

    Raises:
        OnnxsmithError: `save/…` if the folder does not exist or cannot be written to; `edit/not-recorded` for large
            arrays beside a pipe.
    """
    real = Path(os.path.realpath(patch))
    if real.exists() and not real.is_file():  # a terminal or a pipe
        yield lambda: _printed(real, text, files)
        return
    refuse_missing(real.parent)
    with disk_problems(real), folders.beside(real) as folder:
        for name, array in files.items():
            np.save(folder / name, array, allow_pickle=False)
        (folder / real.name).write_text(text, encoding="utf-8")

        def place() -> None:
            for name in (*files, real.name):  # the patch last, so that its arrays already exist
                (folder / name).replace(real.parent / name)

        yield place


def _printed(path: Path, text: str, files: Mapping[str, Any]) -> None:
    if files:
        raise problem(
            "edit/not-recorded",
            "a patch with large arrays needs a folder",
            where=str(path),
            why=f"the arrays lie beside it: {', '.join(files)}",
            fix="record to a file: patch.toml",
        )
    path.write_text(text, encoding="utf-8")
