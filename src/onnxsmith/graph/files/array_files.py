"""Writes arrays to `.npz` and `.safetensors` files.

An `.npz` is a zip archive of numpy's `.npy` files (numpy.lib.format). A `.safetensors` has eight bytes with the length
of a JSON head, the head, and the values: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

SAFETENSORS_CODES = {
    "float": "F32", "double": "F64", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL",
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float8e4m3fn": "F8_E4M3", "float8e5m2": "F8_E5M2",
}  # fmt: skip
"""Maps ONNX's names of dtypes, in small letters, to the codes that every reader of the format knows."""


INDEX = "onnxsmith.json"
"""Names the entry of an `.npz` that holds a JSON text, as an array of bytes."""
_DRIVE = re.compile(r"^([A-Za-z]):")
_HIDDEN = re.compile(r"(^|/)\.")


def safetensors_start(head: Mapping[str, Any]) -> bytes:
    """Returns the bytes before the values: the length of the head, and the head."""
    text = json.dumps(head, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the values begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text


def new_npz(file: Path | IO[bytes]) -> zipfile.ZipFile:
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
    """Returns a name for an entry of a zip archive that is no path out of a folder: a program that unpacks the archive
    may take it for one. `/a/../b` becomes `a/_../b`."""
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
