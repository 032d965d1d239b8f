"""Writes arrays to `.npz` and `.safetensors` files, and reads `.npz` and `.npy`.

An `.npz` is a zip archive of numpy's `.npy` files (numpy.lib.format). A `.safetensors` has eight bytes with the length
of a JSON head, the head, and the values: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from onnxsmith.base import user_files
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import problem
from onnxsmith.base.system import memory_limit

SAFETENSORS_CODES = {
    "float": "F32", "double": "F64", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL",
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float8e4m3fn": "F8_E4M3", "float8e5m2": "F8_E5M2",
}  # fmt: skip
"""Maps ONNX's names of dtypes, in small letters, to the codes that every reader of the format knows."""

_MAGIC, _ZIP, _PICKLE = b"\x93NUMPY", b"PK", b"\x80"
_OBJECTS = "it holds pickled objects, which are not read: reading them can run code"

DAMAGED = (ValueError, ArithmeticError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)
"""Lists the errors that a damaged file of arrays raises when it is read."""


INDEX = "onnxsmith.json"
"""Names the entry of an `.npz` that holds a JSON text, as an array of bytes."""
_DRIVE = re.compile(r"^([A-Za-z]):")
_HIDDEN = re.compile(r"(^|/)\.")


def safetensors_start(head: Mapping[str, Any]) -> bytes:
    """Returns the bytes before the values: the length of the head, and the head."""
    text = json.dumps(head, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the values begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text


def new_npz(file: OwnPath | IO[bytes]) -> zipfile.ZipFile:
    """Opens an empty `.npz`."""
    return zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)


def add_to_npz(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Adds an array. Raises ValueError for objects, which would be pickled."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, array, allow_pickle=False)


def write_npz(file: IO[bytes], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes arrays by name. Allows every name, unlike `numpy.savez`, which refuses `file` and `allow_pickle`. If some
    names would be paths out of a folder, the entry `onnxsmith.json` has the names of all arrays by their keys."""
    kept = {name for name in arrays if name == member(name) != INDEX}
    taken = {INDEX, *kept}
    keys = {name: name if name in kept else free_key(member(name), taken) for name in arrays}
    with new_npz(file) as archive:
        for name, array in arrays.items():
            add_to_npz(archive, keys[name], array)
        if len(kept) < len(arrays):
            names = json.dumps({"names": {key: name for name, key in keys.items()}})
            add_to_npz(archive, INDEX, np.frombuffer(names.encode(), np.uint8))


def named(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Returns the arrays of an `.npz`, read by key, under the names that `write_npz` got."""
    try:
        names = json.loads(bytes(arrays[INDEX]).decode())["names"]
        return {str(names[key]): array for key, array in arrays.items() if key != INDEX}
    except (LookupError, TypeError, ValueError):  # without an index, each key is the name
        return dict(arrays)


def member(name: str) -> str:
    """Returns a name for an entry of a zip archive that is no path out of a folder, and has no hidden characters. A
    program that unpacks the archive may take the name for a path, and print it. `/a/../b` becomes `a/_../b`."""
    name = "".join(one if one.isprintable() else "_" for one in name)
    inner = _DRIVE.sub(r"\1_", name.replace("\\", "_").lstrip("/"))
    return _HIDDEN.sub(r"\1_.", inner) or "_"


def free_key(wish: str, taken: set[str]) -> str:
    """Reserves and returns a free key that both formats accept, such as `wish` or `wish#2`."""
    wish = wish.replace("\0", "?") + ("#" if wish.endswith(".npy") else "")  # numpy would strip the suffix
    key, number = wish, 1
    while key in taken:
        number += 1
        key = f"{wish}#{number}"
    taken.add(key)
    return key


class ArrayFile:
    """A `.npz` or `.npy` whose heads were read: the dtype, shape and size of every array are known before any value is
    read. Reads no pickled objects.

    Raises:
        OSError, and those of `DAMAGED`: the file cannot be read, holds something else, or a head and its values have
            different sizes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with user_files.opened(path) as file:
            start = file.read(len(_MAGIC))
        self._archive: zipfile.ZipFile | None = None
        self._entries: dict[str, zipfile.ZipInfo] = {}
        if start.startswith(_PICKLE):
            raise ValueError(_OBJECTS)
        if start.startswith(_ZIP):
            with user_files.opened(path) as file:
                self._archive = zipfile.ZipFile(file)
                self._sizes = self._heads(self._archive)
        elif start == _MAGIC:
            with user_files.opened(path) as file:
                self._sizes = {"": _declared(file, path.stat().st_size, is_alone=False)}
        else:
            raise ValueError("it is neither an .npz nor an .npy, whatever its name")

    @property
    def names(self) -> list[str]:
        """Returns the names of the arrays; "" for the one array of a `.npy`."""
        return list(self._sizes)

    def array(self, name: str) -> npt.NDArray[Any]:
        """Returns one array.

        Raises:
            OnnxsmithError: `input/too-large` if this process has no memory for it.
        """
        refuse_large(self.path, {name: self._sizes[name]})
        return self._read(name)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns all arrays by name.

        Raises:
            OnnxsmithError: `input/too-large` if this process has no memory for all of them.
        """
        refuse_large(self.path, self._sizes)
        return {name: self._read(name) for name in self._sizes}

    def _heads(self, archive: zipfile.ZipFile) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.is_dir() or name in sizes:
                raise ValueError(f"its entry {entry.filename!r} is {'a folder' if entry.is_dir() else 'there twice'}")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"its entry {entry.filename!r} has a compression that numpy does not write")
            try:
                with archive.open(entry) as file:
                    sizes[name] = _declared(file, entry.file_size, is_alone=True)
            except ValueError as error:
                raise ValueError(f"its entry {entry.filename!r}: {error}") from error
            self._entries[name] = entry
        return sizes

    def _read(self, name: str) -> npt.NDArray[Any]:
        with user_files.opened(self.path) as whole:
            if self._archive is None:
                return _native(np.lib.format.read_array(whole, allow_pickle=False))
            self._archive.fp = whole  # a new ZipFile would read the directory of all entries again
            with self._archive.open(self._entries[name]) as file:
                return _native(np.lib.format.read_array(file, allow_pickle=False))


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns the array in the byte order of this machine. Another machine may have written it in the other order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def refuse_large(path: Path, sizes: Mapping[str, int]) -> None:
    """Refuses arrays, of these bytes by name, that together need more memory than this process may take.

    Raises:
        OnnxsmithError: `input/too-large`.
    """
    room, whole = memory_limit.HERE.room(), sum(sizes.values())
    if room is None or whole <= room:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    raise problem(
        "input/too-large",
        f"the arrays have {whole:,} bytes when they are read; this process may take {room:,} more",
        where=str(path),
        why=f"the largest array{largest and f', {largest!r},'} has {sizes[largest]:,} bytes, the file "
        f"{path.stat().st_size:,}. The limit is three quarters of the free memory, or what `ulimit -v` leaves",
        fix="give fewer or smaller arrays in a file; or end other programs, raise the limit that `ulimit -v` shows, or "
        "use a machine with more memory",
    )


def _declared(file: IO[bytes], size: int, *, is_alone: bool) -> int:
    """Reads the head of an array, and returns the bytes of its values. `size` are the bytes that there are with the
    head; if the array `is_alone`, they have to be those of the array.

    Raises:
        ValueError: there is no head, it holds objects, or the values have another size.
    """
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = read(file)
    except (*DAMAGED, LookupError, SyntaxError, MemoryError, RecursionError, TokenError) as error:
        raise ValueError("it does not begin with the head of an array of numbers") from error
    if dtype.hasobject:
        raise ValueError(_OBJECTS)
    if any(type(count) is not int or count < 0 for count in shape) or not dtype.itemsize:
        raise ValueError(f"its head declares the shape {shape} of {dtype}")
    declared: int = math.prod(shape) * dtype.itemsize
    there = size - file.tell()
    if declared > there or (is_alone and declared < there):
        raise ValueError(f"its head declares {declared:,} bytes of values, and there are {there:,}")
    return declared
