"""Recognises pickles by their bytes, without unpickling them: a pickle runs code when it is loaded."""

from __future__ import annotations

import bz2
import io
import lzma
import pickletools
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files

_READ = 2**20
"""Counts the bytes of a file in which a pickle is looked for. A choice: torch.save begins with the pickle."""
_LEAST = 4
"""Counts the operations that make bytes after a pickle's first byte a pickle. A choice: random bytes rarely have as
many."""
_PROTOCOL = b"\x80"
"""The first byte of pickles of protocol 2 and above (PEP 307)."""
_VERSIONS = b"\x02\x03\x04\x05"
"""The second byte: the protocol. 5 is the newest in Python 3.14."""
_HEADER = 8
"""Counts the bytes of the length that a safetensors file begins with; then its header follows, in JSON."""
_PACKED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, 31),
    b"x": zlib.decompressobj,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
    b"]\x00\x00": lzma.LZMADecompressor,
}
"""Maps the first bytes of compressed files to what reads them: gzip, and the forms that joblib writes. 31 is zlib's
number for gzip."""
_ENTRY = b"PK\x03\x04"
"""The first bytes of an entry of a zip archive; its name has the length at the bytes 26 and 27, and begins at 30."""
_PICKLES = (".pkl", ".pickle")
_NPY, _NPY_HEADER, _OBJECTS = b"\x93NUMPY", 128, b"'|O'"
"""The first bytes of a .npy file, the bytes in which its header has the dtype, and the dtype of objects (NEP 1)."""


def kind(path: Path) -> str:
    """Returns what the bytes of a file are: `pickle`, `safetensors` or `other`."""
    with user_files.opened(path) as file:
        start = file.read(_READ)
    if _is_archive(path) or _holds_pickle(start, is_whole=len(start) < _READ) or _is_packed_pickle(start):
        return "pickle"
    if start[_HEADER : _HEADER + 1] == b"{" and int.from_bytes(start[:_HEADER], "little") < path.stat().st_size:
        return "safetensors"
    return "other"


def _is_archive(path: Path) -> bool:
    """Whether the file is a zip archive with a pickle in it, as torch.save writes, or one with such a file in it, as
    torch.export and numpy.savez of objects write."""
    try:
        with user_files.opened(path) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith(_PICKLES) or _is_member(archive, name) for name in archive.namelist())
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, ValueError, RuntimeError):
        return False


def _is_member(archive: zipfile.ZipFile, name: str) -> bool:
    with archive.open(name) as file:
        return _holds_pickle(file.read(_READ), is_whole=False)


def _holds_pickle(start: bytes, *, is_whole: bool) -> bool:
    """Whether bytes begin a pickle, an archive of torch.save, or a .npy file of objects, which are pickled. If they are
    not the whole content, a pickle of the oldest protocols is not recognised: it looks like text."""
    if start.startswith(_ENTRY):
        return start[30 : 30 + int.from_bytes(start[26:28], "little")].decode("latin-1").endswith(_PICKLES)
    if start.startswith(_NPY):
        return _OBJECTS in start[:_NPY_HEADER]
    return _is_pickle(start, is_whole=is_whole)


def _is_packed_pickle(start: bytes) -> bool:
    """Whether the file is compressed, and its content is a pickle or begins a zip archive with one. No more than the
    start is unpacked, whatever the size of the content."""
    for begin, unpacker in _PACKED.items():
        if start.startswith(begin):
            unpacked = unpacker()
            try:
                content = unpacked.decompress(start, _READ)
            except (zlib.error, lzma.LZMAError, OSError):
                return False
            return _holds_pickle(content, is_whole=unpacked.eof)
    return False


def _is_pickle(start: bytes, *, is_whole: bool) -> bool:
    """Whether bytes are the operations of a pickle. Without the first byte of newer protocols, the whole file has to
    be one."""
    count, ended = 0, -1
    try:
        for operation, _, position in pickletools.genops(io.BytesIO(start)):
            count += 1
            if operation.name == "STOP":
                ended = position or 0
    except Exception:  # noqa: BLE001 — bytes that are no pickle raise errors of many kinds
        pass
    if start[:1] == _PROTOCOL and start[1:2] in _VERSIONS and len(start) > _LEAST:
        return count >= _LEAST or ended > 0
    return is_whole and count > 1 and ended == len(start) - 1
