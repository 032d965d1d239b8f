"""Writes and reads arrays in a `.safetensors`, one by one.

The head comes first in the file but is known last. So the values are first written to a second file, and no value stays
in memory. Reading maps the file into memory.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base import user_files
from onnxsmith.base.folders import OwnPath
from onnxsmith.graph.files.array_files import SAFETENSORS_CODES, safetensors_start
from onnxsmith.runtimes._dtypes import name_of, numpy_dtype
from onnxsmith.runtimes.base import Array

_NAMES = {code: name for name, code in SAFETENSORS_CODES.items()}
_LONGEST = 100_000_000
"""Limits the head to this number of bytes (limit of the safetensors library)."""


class Writer:
    """Writes a file, with the values in a second file beside it until `finish`."""

    def __init__(self, file: OwnPath) -> None:
        self._file: OwnPath = file
        self._values = file.with_suffix(".values").open("w+b")
        self._head: dict[str, Any] = {}

    def add(self, key: str, array: Array) -> None:
        """Adds an array. If the format lacks the dtype, the array's bits are stored as unsigned integers."""
        name = name_of(array.dtype)
        code = SAFETENSORS_CODES.get(name, f"U{array.dtype.itemsize * 8}")
        begin = self._values.tell()
        if array.size:
            self._values.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        self._head[key] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, self._values.tell()]}

    def finish(self, about: str) -> None:
        """Writes the head and appends the values."""
        self._values.seek(0)
        with self._file.open("wb") as made:
            made.write(safetensors_start({"__metadata__": {"onnxsmith": about}, **self._head}))
            shutil.copyfileobj(self._values, made, 2**20)

    def close(self) -> None:
        """Closes the file of values."""
        self._values.close()


class Reader:
    """Reads a file whose head fits its size."""

    def __init__(self, path: Path) -> None:
        size = path.stat().st_size
        with user_files.opened(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _LONGEST):
                raise ValueError("the file ends inside its header")
            head = user_files.parse_json(file.read(length))
        self._path, self._start = path, 8 + length
        self._about = head.pop("__metadata__", {})["onnxsmith"]
        self._head = {key: self._checked(item, size - self._start) for key, item in head.items()}
        self.keys = set(head)

    def _checked(self, item: dict[str, Any], room: int) -> tuple[str, tuple[int, ...], int]:
        dtype, shape = numpy_dtype(_NAMES[item["dtype"]]), tuple(item["shape"])
        begin, end = item["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        if not whole or end > room or end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError("the place of a tensor is outside the file, or has another size than the tensor")
        return _NAMES[item["dtype"]], shape, begin

    def about(self) -> str:
        """Returns the JSON text."""
        return str(self._about)

    def array(self, key: str) -> Array:
        """Returns the array of this key, mapped into memory."""
        name, shape, begin = self._head[key]
        dtype = numpy_dtype(name)
        if not math.prod(shape):
            return np.empty(shape, dtype)
        with user_files.opened(self._path) as file:
            raw = np.memmap(file, np.uint8, "r", self._start + begin, (math.prod(shape) * dtype.itemsize,))
        return raw.view(dtype).reshape(shape)
