"""Opens the files that users give, and reads texts, TOML and JSON. Refuses pipes and devices. Sizes and depths of
texts, and integers in them, have bounds, and all that is wrong with a file is an `OSError` or a `ValueError`."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

MOST = 2**28
"""Limits the bytes of a text. A choice: far above every plan, patch and record."""
_DEEPEST = 100
"""Limits the depth of lists and tables in each other. A choice: no file nests so deep, and what reads the content
recurses."""
_LEAST, _LARGEST = -(2**63), 2**64 - 1
"""Limit the integers to those of int64 and uint64. TOML allows no others, and no tensor holds them."""
_TOO_DEEP = f"lists or tables are nested over {_DEEPEST} deep"


def read_utf8(path: Path) -> str:
    """Returns the text of a file in UTF-8, without the mark that some editors write in front of it.

    Raises:
        OSError: the file cannot be read, is a pipe or a device, or is too large.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8-sig")


def read_bytes(path: Path) -> bytes:
    """Returns the bytes of a text file.

    Raises:
        OSError: as `read_utf8`.
    """
    with opened(path) as file:
        content = file.read(MOST + 1)
    if len(content) > MOST:
        raise OSError(errno.EFBIG, f"the file has more than {MOST:,} bytes", str(path))
    return content


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """Opens a file for reading.

    Raises:
        OSError: the file cannot be read, or is a pipe or a device.
    """
    refuse_special(path)
    with path.open("rb") as file:
        yield file


def refuse_special(path: Path) -> None:
    """Refuses a pipe or a device, which may have no end.

    Raises:
        OSError: the path is one.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "this is a pipe or a device, and not a file", str(path))


def parse_toml(text: str) -> dict[str, Any]:
    """Returns the content of a text in TOML.

    Raises:
        ValueError: it is not TOML (`tomllib.TOMLDecodeError`), nests too deep, or has an integer of over 64 bits.
    """
    import tomllib

    found: dict[str, Any] = _parsed(tomllib.loads, text)
    return found


def parse_json(text: str | bytes) -> Any:
    """Returns the content of a text in JSON.

    Raises:
        ValueError: it is not JSON, nests too deep, or has an integer of over 64 bits.
    """
    return _parsed(json.loads, text)


def _parsed(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        found = parse(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _refuse_extreme(found)
    return found


def _refuse_extreme(content: Any) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        wide = next((one for one in level if isinstance(one, int) and not _LEAST <= one <= _LARGEST), None)
        if wide is not None:
            raise ValueError(f"an integer has {wide.bit_length()} bits, and 64 are allowed")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError(_TOO_DEEP)
