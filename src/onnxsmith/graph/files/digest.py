"""Digests of files: of all bytes, or of a bounded part of a large file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from onnxsmith.base import user_files

_WHOLE = 256 * 2**20
"""Limits the bytes of a data file that `bounded` reads in full. A choice: they take a second from a fast disk."""
_PIECE = 2**20
"""Sets the bytes of each piece that `bounded` reads of a larger file. A choice."""


def sha256(file: Path) -> str:
    """Returns the SHA-256 of the file's bytes, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    with user_files.opened(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def bounded(file: Path) -> tuple[str, int]:
    """Returns a SHA-256 and the number of bytes that it covers.

    Covers all bytes of a file up to 256 MiB. Of a larger file, covers pieces of 1 MiB: the first, the last, and others
    at equal distances, 256 MiB together. The size is hashed first, so that files of different sizes differ.

    Raises:
        OSError: the file cannot be read.
    """
    size = file.stat().st_size
    if size <= _WHOLE:
        return sha256(file), size
    found = hashlib.sha256(f"{size} bytes, in pieces of {_PIECE}\n".encode())
    pieces = _WHOLE // _PIECE
    with user_files.opened(file) as opened:
        for number in range(pieces):
            opened.seek((size - _PIECE) * number // (pieces - 1))
            found.update(opened.read(_PIECE))
    return found.hexdigest(), _WHOLE
